import * as t from 'io-ts'
import {
  type ConfigFormat,
  createConfigFormat,
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
} from '../cdk'
import { limitFields, serviceFields } from './connection'

/** JSON schemas of the objects that can be written to the service. */
export type DestinationObjects = { readonly visit_records: JsonSchema; readonly locations: JsonSchema }

/** A column name for each attribute of an object. */
const columnFields = ({ properties }: JsonSchema, example: string) => {
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

const createDestinationCodec = (objects: DestinationObjects) =>
  orderFields({
    ...serviceFields,
    mapping: describeField(
      'Mapping',
      'From which column each attribute is taken; the attribute of the same name, in any case, where none is given',
    )(
      sectionField(
        orderFields({
          visit_records: describeField(
            'Visit records',
            'Columns of visits',
          )(columnFields(objects.visit_records, 'visit')),
          locations: describeField('Locations', 'Columns of locations')(columnFields(objects.locations, 'location')),
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

/** The configuration of the destination, with every default filled in; its address, credentials and limits are the source's. */
export type DestinationConfig = t.TypeOf<ReturnType<typeof createDestinationCodec>>

/** The format of the configuration, whose mapping has a key for each attribute of `objects`. */
export const createDestinationFormat = (objects: DestinationObjects): ConfigFormat<DestinationConfig> =>
  createConfigFormat(createDestinationCodec(objects), {
    title: 'Feedback Data Service',
    documentationUrl: 'https://docs.airbyte.com/integrations/destinations/feedback',
  })
