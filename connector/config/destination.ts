import * as t from 'io-ts'
import { Location, VisitRecord } from '../api'
import {
  describeField,
  enumField,
  fieldWithDefault,
  integerField,
  type JsonSchema,
  numberField,
  optionalField,
  orderFields,
  sectionField,
  textField,
  toJsonSchema,
} from '../cdk'
import { limitFields, serviceFields } from './connection'
import { createConfigDecoder } from './decoder'

/** A column for each attribute of an object of the service. */
const columnFields = (codec: t.Any, example: string) => {
  const { properties } = toJsonSchema(codec)
  const attributes = Object.entries((properties ?? {}) as Readonly<Record<string, JsonSchema>>)
  return sectionField(
    orderFields(
      Object.fromEntries(
        attributes.map(([attribute, { description }]) => [
          attribute,
          describeField(attribute, `Column with: ${description}`, {
            examples: [`${example}_${attribute.toLowerCase()}`],
          })(optionalField(textField)),
        ]),
      ),
    ),
  )
}

/** The destination's configuration; its address, credentials and limits are the source's. */
export const DestinationConfig = orderFields({
  ...serviceFields,
  mapping: describeField(
    'Mapping',
    'From which column each attribute is taken; the attribute of the same name, in any case, where none is given',
  )(
    sectionField(
      orderFields({
        visit_records: describeField('Visit records', 'Columns of visits')(columnFields(VisitRecord, 'visit')),
        locations: describeField('Locations', 'Columns of locations')(columnFields(Location, 'location')),
      }),
    ),
  ),
  dead_letter_path: describeField(
    'Dead-letter file',
    'Rejected records are added to this file, as JSON lines with the reason',
    {
      examples: ['/data/rejected.jsonl'],
    },
  )(optionalField(textField)),
  on_reject: describeField(
    'Rejected records',
    'continue counts them and goes on, fail ends the run at the first; continue where there is a dead-letter file, else fail',
    { examples: ['continue'] },
  )(optionalField(enumField('continue', 'fail'))),
  max_rejects_percent: describeField(
    'Most rejected (%)',
    'A run with a larger share of rejected records fails, from the 100th record on',
    { examples: [10] },
  )(fieldWithDefault(numberField(0, 100), 10)),
  max_visit_age_days: describeField(
    'Oldest visit (days)',
    'Visits longer ago are rejected, so that a backfill does not survey patients of years ago',
    { examples: [30] },
  )(fieldWithDefault(integerField(0, 36_500), 30)),
  batch_size: describeField('Batch size', 'Records sent with one request', { examples: [100] })(
    fieldWithDefault(integerField(1, 10_000), 100),
  ),
  max_batch_age_seconds: describeField('Oldest batch (seconds)', 'A batch that is not full leaves after so long', {
    examples: [5],
  })(fieldWithDefault(integerField(1, 3600), 5)),
  reconcile: describeField(
    'Reconcile',
    'Deactivate locations that a complete list no longer has',
  )(
    sectionField(
      orderFields({
        ledger_path: describeField(
          'Ledger file',
          'Keeps the codes of the locations that were accepted; without it nothing is deactivated but what says so',
          { examples: ['/data/locations.ledger'] },
        )(optionalField(textField)),
      }),
    ),
  ),
  max_deactivations_percent: describeField(
    'Most deactivated (%)',
    'Of the locations in the ledger; a list that would deactivate more fails',
    { examples: [10] },
  )(fieldWithDefault(numberField(0, 100), 10)),
  dry_run: describeField('Dry run', 'Check and plan everything, send nothing and answer no state', {
    examples: [false],
  })(fieldWithDefault(t.boolean, false)),
  ...limitFields,
})
export type DestinationConfig = t.TypeOf<typeof DestinationConfig>

/** The form that platforms draw: spec/destination.json. */
export const destinationSpec: JsonSchema = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  title: 'Feedback Data Service',
  ...toJsonSchema(DestinationConfig),
}

/** A configuration and the keys in it that mean nothing to us; a failure names every wrong key path. */
export const decodeDestinationConfig = createConfigDecoder(DestinationConfig, destinationSpec)

/** Where the documentation of the destination stands. */
export const destinationDocumentationUrl = 'https://docs.airbyte.com/integrations/destinations/feedback'
