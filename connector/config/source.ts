import * as t from 'io-ts'
import {
  type ConfigFormat,
  createConfigFormat,
  describeField,
  enumField,
  fieldWithDefault,
  integerField,
  listField,
  numberField,
  optionalField,
  optionalGroupField,
  orderFields,
  patternField,
  sectionField,
  textField,
  timeField,
} from '../cdk'
import {
  categoryLookupField,
  limitFields,
  locationLookupField,
  secretKeywords,
  serviceFields,
  sourceLookupField,
} from './connection'

const SourceCodec = orderFields({
  ...serviceFields,
  start_date: describeField(
    'Start date',
    'Read the reviews that arrived or changed since this time or date. If you move it back, ' +
      'everything since then is read again. It cannot be in the future',
    {
      examples: ['2024-01-01T00:00:00Z'],
    },
  )(timeField),
  lookback_minutes: describeField(
    'Lookback (minutes)',
    'How far before its cursor each run starts, to catch changes that become visible late',
    { examples: [10] },
  )(fieldWithDefault(integerField(0, 100_000), 10)),
  sources: describeField('Sources', 'Ids of the review sources to read; all if left out', { examples: [[1, 2]] })(
    optionalField(listField(integerField(0, Number.MAX_SAFE_INTEGER))),
  ),
  mention_time_after: describeField('Mentioned after', 'Only reviews posted after this time', {
    examples: ['2024-01-01T00:00:00Z'],
  })(optionalField(timeField)),
  mention_time_before: describeField('Mentioned before', 'Only reviews posted before this time', {
    examples: ['2025-01-01T00:00:00Z'],
  })(optionalField(timeField)),
  additional_fields: describeField('Additional fields', 'Extra attributes to request from the export', {
    examples: [['brand', 'visitRecordId']],
  })(fieldWithDefault(listField(enumField('brand', 'visitRecordId')), ['brand', 'visitRecordId'])),
  page_size: describeField('Page size', 'Reviews in one request', { examples: [1000] })(
    fieldWithDefault(integerField(10, 1000), 1000),
  ),
  entities: describeField(
    'Entities',
    'The entities whose comments, transparency reviews and ratings are read; none if left out',
  )(
    sectionField(
      orderFields({
        person_ids: describeField('Persons', 'Ids of physicians', { examples: [['500057']] })(
          fieldWithDefault(listField(textField), []),
        ),
        location_ids: describeField('Locations', 'Ids of locations', { examples: [['1034']] })(
          fieldWithDefault(listField(textField), []),
        ),
        entity_ids: describeField('Roll-up entities', 'Ids of roll-up entities', { examples: [['7']] })(
          fieldWithDefault(listField(textField), []),
        ),
        from_reviews: describeField(
          'From reviews',
          'Also read the entities named in the exported reviews',
        )(
          sectionField(
            orderFields({
              locations: describeField('Locations', 'Use the ids of locations in reviews as location ids', {
                examples: [false],
              })(fieldWithDefault(t.boolean, false)),
              providers: describeField('Providers', 'Use this attribute of providers in reviews as person ids', {
                examples: ['none'],
              })(fieldWithDefault(enumField('none', 'id', 'npi'), 'none')),
            }),
          ),
        ),
      }),
    ),
  ),
  feedback_filters: describeField(
    'Feedback filters',
    'Which comments and transparency reviews are read',
  )(
    sectionField(
      orderFields({
        min_threshold: describeField('Minimum rating', 'Only ratings of at least this value', { examples: [0] })(
          optionalField(numberField(0, 5)),
        ),
        min_survey_count: describeField('Minimum surveys', 'Only entities with at least this many surveys', {
          examples: [0],
        })(optionalField(integerField(0))),
        min_rating_count: describeField('Minimum ratings', 'Only entities with at least this many ratings', {
          examples: [-1],
        })(optionalField(integerField(-1))),
        min_word_count: describeField('Minimum words', 'Only texts of at least this many words', { examples: [0] })(
          optionalField(integerField(0)),
        ),
        additional_fields: describeField('Additional fields', 'Extra attributes to request', {
          examples: [['brand']],
        })(optionalField(listField(textField))),
        per_page: describeField('Page size', 'Rows in one request', { examples: [100] })(
          fieldWithDefault(integerField(1, 1000), 100),
        ),
        days: describeField('Days', 'The period of entity_ratings', { examples: [365] })(
          fieldWithDefault(integerField(1, 36_500), 365),
        ),
      }),
    ),
  ),
  feedback_lookback_days: describeField(
    'Feedback lookback (days)',
    'Days of comments and transparency reviews that each run reads again, to catch late responses; at least one',
    { examples: [30] },
  )(fieldWithDefault(integerField(0, 3650), 30)),
  lookups: describeField(
    'Lookups',
    'Operations that list sources, categories and locations; by default, sources and categories come from reviews',
  )(
    sectionField(
      orderFields({
        sources: describeField(
          'Sources',
          'How to look up sources: true, or an object; another operation requires path and primary_key',
        )(sourceLookupField),
        categories: describeField(
          'Categories',
          'How to look up categories; requires path and primary_key',
        )(categoryLookupField),
        locations: describeField(
          'Locations',
          'The locations that the service manages, as the stream managed_locations: true, or an object; ' +
            'another operation requires path',
        )(locationLookupField),
      }),
    ),
  ),
  on_unknown_attribute: describeField(
    'Unknown attributes',
    'keep collects them in unknown_attributes, drop leaves them out, fail ends the stream',
    { examples: ['keep'] },
  )(fieldWithDefault(enumField('keep', 'drop', 'fail'), 'keep')),
  deletes: describeField(
    'Deletions',
    'separate reports them only in deleted_reviews; tombstones also marks deleted reviews in reviews',
    { examples: ['separate'] },
  )(fieldWithDefault(enumField('separate', 'tombstones'), 'separate')),
  accept_empty_lists: describeField(
    'Accept empty lists',
    'Let a full refresh that reads nothing remove the rows read before; otherwise it fails and they stay',
    { examples: [false] },
  )(fieldWithDefault(t.boolean, false)),
  privacy: describeField(
    'Privacy',
    'Attributes to leave out or hash, by path such as export.contents.response or comments.comment',
  )(
    sectionField(
      orderFields({
        drop: describeField('Drop', 'Paths of attributes to leave out', {
          examples: [['export.taskDetails.ownerEmail']],
        })(fieldWithDefault(listField(textField), [])),
        hash: describeField('Hash', 'Paths of attributes to replace with their HMAC-SHA-256 in hex', {
          examples: [['export.visitRecordId']],
        })(fieldWithDefault(listField(textField), [])),
        hash_key: describeField('Hash key', 'The key of the hashes: the same key gives the same hashes', {
          ...secretKeywords,
          examples: ['a long random text'],
        })(optionalField(textField)),
      }),
    ),
  ),
  audit: describeField(
    'Audit',
    'Add the stream sync_audit: for each stream that a run finished, how many records it sent and a digest of them, ' +
      'so that the dbt package can check that all have arrived',
    { examples: [false] },
  )(fieldWithDefault(t.boolean, false)),
  ...limitFields,
  max_response_mb: describeField(
    'Largest response (MB)',
    'A larger response is discarded and requested again in halves',
    {
      examples: [64],
    },
  )(fieldWithDefault(integerField(1, 1024), 64)),
  partition: describeField(
    'Partition',
    'The share of a backfill that this process reads, if several share it; requires index and count',
  )(
    optionalGroupField(
      orderFields({
        index: describeField('Index', 'The number of this share, from 0', { examples: [0] })(integerField(0, 999)),
        count: describeField('Count', 'How many processes share the backfill', { examples: [8] })(
          integerField(1, 1000),
        ),
      }),
    ),
  ),
  snapshot_path: describeField('Snapshot file', 'Also write the data into this DuckDB file', {
    examples: ['/data/reviews.duckdb'],
  })(optionalField(textField)),
  reporting_time_zone: describeField(
    'Reporting time zone',
    'Time zone of days and months in the views, the report and the Parquet folders of a DuckDB file; UTC until set',
    { examples: ['Europe/Berlin'] },
  )(optionalField(patternField(/^[A-Za-z][A-Za-z0-9_+/-]*$/))),
  activate_version: describeField(
    'Table versions (Singer)',
    'tap-feedback only: at the end of a FULL_TABLE read, tell the target ' +
      'to delete all other rows (ACTIVATE_VERSION), if the target can',
    { examples: [false] },
  )(fieldWithDefault(t.boolean, false)),
})

/** The configuration of the source with all defaults. */
export type SourceConfig = t.TypeOf<typeof SourceCodec>

export const sourceFormat: ConfigFormat<SourceConfig> = createConfigFormat(SourceCodec, {
  title: 'Feedback Data Service',
  documentationUrl: 'https://docs.airbyte.com/integrations/sources/feedback',
})
