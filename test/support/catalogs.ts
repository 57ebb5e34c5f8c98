import * as E from 'fp-ts/Either'
import { decodeConfiguredCatalog } from '../../connector/cdk/airbyte/catalog'
import type { ConfiguredCatalog } from '../../connector/cdk/catalog'

const decodeCatalog = (consumer: 'destination' | 'snapshot', streams: ReadonlyArray<unknown>): ConfiguredCatalog => {
  const decoded = decodeConfiguredCatalog(consumer)({ streams })
  if (E.isLeft(decoded)) throw new Error(decoded.left.message)
  return decoded.right
}

/** A stream of a configured catalog; `more` are its settings, `description` is what discover says of it. */
export const configuredStream = (name: string, more: object = {}, description: object = {}) => ({
  stream: { name, json_schema: {}, supported_sync_modes: ['full_refresh'], ...description },
  sync_mode: 'full_refresh',
  destination_sync_mode: 'append',
  ...more,
})

/** The configured catalog of a destination. */
export const destinationCatalog = (...streams: ReadonlyArray<unknown>): ConfiguredCatalog =>
  decodeCatalog('destination', streams)

/** The configured catalog of a snapshot with the stream `reviews`; `more` are settings of the stream. */
export const snapshotCatalog = (more: object = {}): ConfiguredCatalog =>
  decodeCatalog('snapshot', [
    {
      stream: {
        name: 'reviews',
        json_schema: { properties: { id: { type: 'integer' } } },
        source_defined_primary_key: [['id']],
      },
      sync_mode: 'incremental',
      destination_sync_mode: 'append_dedup',
      cursor_field: ['modifiedTime'],
      ...more,
    },
  ])
