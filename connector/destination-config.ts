import * as t from 'io-ts'
import { Location } from './api/model/location'
import { VisitRecord } from './api/model/visit-record'
import { type JsonSchema, toJsonSchema } from './cdk/schema'
import { defaulted, integer, maybe, number, oneOfWords, ordered, section, shown, text } from './cdk/settings'
import { configReader } from './config-reader'
import { access, limits } from './connection'

/** A column for each attribute of an object of the service. */
const columnsFor = (codec: t.Any, example: string) => {
  const { properties } = toJsonSchema(codec)
  const attributes = Object.entries((properties ?? {}) as Readonly<Record<string, JsonSchema>>)
  return section(
    ordered(
      Object.fromEntries(
        attributes.map(([attribute, { description }]) => [
          attribute,
          shown(attribute, `Column with: ${description}`, { examples: [`${example}_${attribute.toLowerCase()}`] })(
            maybe(text),
          ),
        ]),
      ),
    ),
  )
}

/** The destination's configuration; its address, credentials and limits are the source's. */
export const DestinationConfig = ordered({
  ...access,
  mapping: shown(
    'Mapping',
    'From which column each attribute is taken; the attribute of the same name, in any case, where none is given',
  )(
    section(
      ordered({
        visit_records: shown('Visit records', 'Columns of visits')(columnsFor(VisitRecord, 'visit')),
        locations: shown('Locations', 'Columns of locations')(columnsFor(Location, 'location')),
      }),
    ),
  ),
  dead_letter_path: shown(
    'Dead-letter file',
    'Rejected records are added to this file, as JSON lines with the reason',
    {
      examples: ['/data/rejected.jsonl'],
    },
  )(maybe(text)),
  on_reject: shown(
    'Rejected records',
    'continue counts them and goes on, fail ends the run at the first; continue where there is a dead-letter file, else fail',
    { examples: ['continue'] },
  )(maybe(oneOfWords('continue', 'fail'))),
  max_rejects_percent: shown(
    'Most rejected (%)',
    'A run with a larger share of rejected records fails, from the 100th record on',
    { examples: [10] },
  )(defaulted(number(0, 100), 10)),
  max_visit_age_days: shown(
    'Oldest visit (days)',
    'Visits longer ago are rejected, so that a backfill does not survey patients of years ago',
    { examples: [30] },
  )(defaulted(integer(0, 36_500), 30)),
  batch_size: shown('Batch size', 'Records sent with one request', { examples: [100] })(
    defaulted(integer(1, 10_000), 100),
  ),
  max_batch_age_seconds: shown('Oldest batch (seconds)', 'A batch that is not full leaves after so long', {
    examples: [5],
  })(defaulted(integer(1, 3600), 5)),
  reconcile: shown(
    'Reconcile',
    'Deactivate locations that a complete list no longer has',
  )(
    section(
      ordered({
        ledger_path: shown(
          'Ledger file',
          'Keeps the codes of the locations that were accepted; without it nothing is deactivated but what says so',
          { examples: ['/data/locations.ledger'] },
        )(maybe(text)),
      }),
    ),
  ),
  max_deactivations_percent: shown(
    'Most deactivated (%)',
    'Of the locations in the ledger; a list that would deactivate more fails',
    { examples: [10] },
  )(defaulted(number(0, 100), 10)),
  dry_run: shown('Dry run', 'Check and plan everything, send nothing and answer no state', { examples: [false] })(
    defaulted(t.boolean, false),
  ),
  ...limits,
})
export type DestinationConfig = t.TypeOf<typeof DestinationConfig>

/** The form that platforms draw: spec/destination.json. */
export const destinationSpec: JsonSchema = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  title: 'Feedback Data Service',
  ...toJsonSchema(DestinationConfig),
}

/** A configuration and the keys in it that mean nothing to us; a failure names every wrong key path. */
export const readDestinationConfig = configReader(DestinationConfig, destinationSpec)

/** Where the documentation of the destination stands. */
export const destinationDocumentationUrl = 'https://docs.airbyte.com/integrations/destinations/feedback'
