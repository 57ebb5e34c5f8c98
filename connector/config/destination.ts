import * as t from 'io-ts'
import {
  annotate,
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
import { limitFields, locationLookupField, serviceFields } from './connection'

/** JSON schemas of the objects that can be written to the service. */
type DestinationObjects = { readonly visit_records: JsonSchema; readonly locations: JsonSchema }

/** A column name; null for an attribute that should not be sent. */
const columnField: t.Type<string | null | undefined, unknown> = Object.assign(
  annotate({ type: 'string', minLength: 1, nullable: true })(
    new t.Type<string | null | undefined, unknown>(
      'text',
      (value): value is string | null | undefined => value == null || textField.is(value),
      (value, context) => (value == null ? t.success(value as null | undefined) : textField.validate(value, context)),
      (value) => value,
    ),
  ),
  { optional: true },
)

const objectNames = ['visit_records', 'locations'] as const

/** The object for each stream, by stream name. */
const streamObjectsField: t.Type<Readonly<Record<string, (typeof objectNames)[number]>>, unknown> = sectionField(
  annotate({ type: 'object', additionalProperties: { type: 'string', enum: objectNames } })(
    t.record(t.string, enumField(...objectNames)),
  ),
)

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
          })(columnField),
        ]),
      ),
    ),
  )
}

const createMappingField = (objects: DestinationObjects) =>
  describeField(
    'Mapping',
    'The column for each attribute; if left out, the column with its name, in upper or lower case. ' +
      'null: the attribute is not sent',
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
  )

/** How rejected records are handled. */
const rejectionFields = {
  dead_letter_path: describeField(
    'Dead-letter file',
    'Rejected records are appended to this file, as JSON lines with the reason',
    {
      examples: ['/data/rejected.jsonl'],
    },
  )(optionalField(textField)),
  on_reject: describeField(
    'Rejected records',
    'continue counts them and continues, fail ends the run at the ' +
      'first; default is continue with a dead-letter file, else fail',
    { examples: ['continue'] },
  )(optionalField(enumField('continue', 'fail'))),
  max_rejects_percent: describeField(
    'Maximum rejected (%)',
    'A run with a larger share of rejected records fails, from the 100th record on',
    { examples: [10] },
  )(fieldWithDefault(numberField(0, 100), 10)),
}

/** When a batch is sent, and which visits are too old for it. */
const batchFields = {
  max_visit_age_days: describeField(
    'Oldest visit (days)',
    'Older visits are rejected, so that a backfill does not survey patients from years ago',
    { examples: [30] },
  )(fieldWithDefault(integerField(0, 36_500), 30)),
  batch_size: describeField('Batch size', 'Records sent with one request', { examples: [100] })(
    fieldWithDefault(integerField(1, 10_000), 100),
  ),
  max_batch_age_seconds: describeField(
    'Maximum batch age (seconds)',
    'A batch that is not full is sent after this time',
    {
      examples: [5],
    },
  )(fieldWithDefault(integerField(1, 3600), 5)),
}

/** Which locations a run deactivates, and how it identifies them. */
const locationListFields = {
  reconcile: describeField(
    'Reconcile',
    'Deactivate locations that are no longer in a complete list',
  )(
    sectionField(
      orderFields({
        ledger_path: describeField(
          'Ledger file',
          'Keeps the codes of accepted locations; if left out, only locations whose records say so are deactivated',
          { examples: ['/data/locations.ledger'] },
        )(optionalField(textField)),
        deactivate_unlisted: describeField(
          'Deactivate unlisted',
          'Also deactivate locations that the service lists but this destination did not write; ' +
            'requires lookups.locations',
          { examples: [false] },
        )(fieldWithDefault(t.boolean, false)),
      }),
    ),
  ),
  lookups: describeField(
    'Lookups',
    'What the service itself lists, for planning and for checking what was written',
  )(
    sectionField(
      orderFields({
        locations: describeField(
          'Locations',
          'The locations that the service manages: true, or an object; another operation requires path',
        )(locationLookupField),
      }),
    ),
  ),
  max_deactivations_percent: describeField(
    'Maximum deactivated (%)',
    'Share of the locations in the ledger, or of those that the service lists; a run that would deactivate more fails',
    { examples: [10] },
  )(fieldWithDefault(numberField(0, 100), 10)),
}

const createDestinationCodec = (objects: DestinationObjects) =>
  orderFields({
    ...serviceFields,
    mapping: createMappingField(objects),
    map_by_name: describeField(
      'Map by name',
      'Also send optional attributes that the mapping does not name, from columns of the same name',
      { examples: [false] },
    )(fieldWithDefault(t.boolean, false)),
    streams: describeField(
      'Streams',
      'For each stream with a different name, what it holds: visit_records or locations',
      { examples: [{ users: 'visit_records' }] },
    )(streamObjectsField),
    ...rejectionFields,
    ...batchFields,
    ...locationListFields,
    dry_run: describeField('Dry run', 'Check and plan everything, send nothing and print no state', {
      examples: [false],
    })(fieldWithDefault(t.boolean, false)),
    ...limitFields,
  })

/**
 * The configuration of the destination with all defaults. Its address, credentials and limits are the same as the
 * source's.
 */
export type DestinationConfig = t.TypeOf<ReturnType<typeof createDestinationCodec>>

/** The format of the configuration. Its mapping has a key for each attribute of `objects`. */
export const createDestinationFormat = (objects: DestinationObjects): ConfigFormat<DestinationConfig> =>
  createConfigFormat(createDestinationCodec(objects), {
    title: 'Feedback Data Service',
    documentationUrl: 'https://docs.airbyte.com/integrations/destinations/feedback',
  })

/**
 * The handling of a rejection if the config does not set it: with a dead-letter file the run continues, without one it
 * ends.
 */
export const rejectAction = ({ on_reject, dead_letter_path }: DestinationConfig): 'continue' | 'fail' =>
  on_reject ?? (dead_letter_path === undefined ? 'fail' : 'continue')
