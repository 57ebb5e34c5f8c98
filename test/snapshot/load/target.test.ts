import * as O from 'fp-ts/Option'
import { describe, expect, it } from 'vitest'
import type { ConfiguredStream } from '../../../connector/cdk/catalog'
import type { StreamInfo } from '../../../connector/cdk/message'
import { chooseLoadTarget, type LoadOptions, toLoadOptions } from '../../../connector/snapshot/load/target'
import type { StreamMetadata } from '../../../connector/snapshot/store/metadata'
import { createStreamInfo } from '../../support/snapshot-messages'

describe('how a configured stream is written', () => {
  const configured = (more: Partial<ConfiguredStream>): ConfiguredStream => ({
    ...{ name: 'things', namespace: undefined, schema: {}, syncMode: 'incremental', objectName: undefined },
    ...{
      primaryKey: [],
      cursor: [],
      destinationSyncMode: undefined,
      generation: undefined,
      minimumGeneration: undefined,
    },
    ...more,
  })
  it.each<[Partial<ConfiguredStream>, LoadOptions]>([
    [{}, {}],
    [{ destinationSyncMode: 'append' }, { mode: 'append' }],
    [{ destinationSyncMode: 'append_dedup' }, { mode: 'append_dedup' }],
    [{ destinationSyncMode: 'overwrite' }, { mode: 'overwrite' }],
    [{ destinationSyncMode: 'overwrite_dedup' }, { mode: 'overwrite' }],
    [{ destinationSyncMode: 'update' }, {}],
    [
      { generation: 3, minimumGeneration: 2 },
      { generation: 3, minimum: 2 },
    ],
    [{ generation: 3 }, { generation: 3, minimum: 0 }],
    [{ generation: 1 }, { generation: 1, minimum: 0 }],
    [{ generation: 0, minimumGeneration: 2 }, {}],
    [{ generation: -1 }, {}],
    [{ minimumGeneration: 2 }, {}],
  ])('by %j is %j', (stream, options) => {
    expect(toLoadOptions(configured(stream))).toEqual(options)
  })
})

describe('where the rows of a stream go', () => {
  const info = (syncMode: StreamInfo['syncMode']): StreamInfo => ({
    ...createStreamInfo('things', {}, ['id'], 'at'),
    syncMode,
  })
  const known = (generation: number, refreshing: boolean, hasState: boolean): StreamMetadata => ({
    ...{ stream: 'things', key: ['id'], generation, refreshing, hasState },
  })
  /** The generation, the lowest one that stays, and if the state is deleted. */
  type Expected = readonly [generation: number, minimum: number, resets: boolean]
  it.each<[StreamInfo['syncMode'], LoadOptions, StreamMetadata | undefined, Expected]>([
    ['incremental', {}, undefined, [0, 0, false]],
    ['incremental', {}, known(3, false, true), [3, 0, false]],
    ['incremental', {}, known(3, true, true), [3, 0, false]],
    ['full_refresh', {}, undefined, [1, 1, true]],
    ['full_refresh', {}, known(3, false, true), [4, 4, true]],
    ['full_refresh', {}, known(3, true, false), [4, 4, true]],
    ['full_refresh', {}, known(3, true, true), [3, 3, false]],
    ['full_refresh', { mode: 'append_dedup' }, known(3, false, true), [3, 0, false]],
    ['full_refresh', { mode: 'append' }, undefined, [0, 0, false]],
    ['incremental', { mode: 'overwrite' }, known(3, false, true), [4, 4, true]],
    ['incremental', { mode: 'overwrite' }, known(3, true, true), [3, 3, false]],
    ['incremental', { mode: 'append', minimum: 1, generation: 1 }, undefined, [1, 1, true]],
    ['full_refresh', { generation: 5, minimum: 0 }, known(3, false, true), [5, 0, false]],
    ['full_refresh', { generation: 5, minimum: 5 }, known(3, true, true), [5, 5, true]],
    ['full_refresh', { generation: 5, minimum: 5 }, known(5, false, true), [5, 5, false]],
    ['full_refresh', { generation: 5, minimum: 5 }, known(5, true, false), [5, 5, false]],
    ['full_refresh', { generation: 5, minimum: 4 }, known(6, false, true), [6, 4, false]],
  ])('of %s with %j after %j', (syncMode, options, metadata, [generation, minimumGeneration, resetsState]) => {
    expect(chooseLoadTarget(info(syncMode), options, metadata)).toEqual({
      ...{ key: options.mode === 'append' ? [] : ['id'], cursor: 'at' },
      ...{ generation, minimumGeneration, resetsState },
    })
  })

  it('has no cursor where the stream has none', () => {
    expect(chooseLoadTarget({ ...info('incremental'), cursor: O.none }, {}, undefined).cursor).toBeUndefined()
  })
})
