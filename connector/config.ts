import * as t from 'io-ts'
import { type JsonSchema, toJsonSchema } from './cdk/schema'
import {
  defaulted,
  integer,
  list,
  matching,
  maybe,
  number,
  oneOfWords,
  ordered,
  section,
  shown,
  text,
  time,
} from './cdk/settings'
import { configReader } from './config-reader'
import { access, limits, secret } from './connection'

const lookup = ordered({
  method: shown('Method', 'GET or POST', { examples: ['GET'] })(defaulted(oneOfWords('GET', 'POST'), 'GET')),
  path: shown('Path', 'Where the operation is, after the base URL', { examples: ['/api/reputation/v1/sources'] })(
    matching(/^\//),
  ),
  records_path: shown('Records path', 'Where its answer holds the records; a dotted path', { examples: ['sources'] })(
    defaulted(t.string as t.Type<string, unknown>, ''),
  ),
  primary_key: shown('Primary key', 'The attribute that tells records apart', { examples: ['id'] })(text),
})

/** The source's configuration (design.md, Config). */
export const SourceConfig = ordered({
  ...access,
  start_date: shown('Start date', 'Reviews that arrived or changed after this time are read', {
    examples: ['2024-01-01T00:00:00Z'],
  })(time),
  lookback_minutes: shown(
    'Lookback (minutes)',
    'How far each run reads back behind its cursor, for changes that became visible late',
    { examples: [10] },
  )(defaulted(integer(0, 100_000), 10)),
  sources: shown('Sources', 'Ids of the review sources to read; none means all', { examples: [[1, 2]] })(
    maybe(list(integer(0, Number.MAX_SAFE_INTEGER))),
  ),
  mention_time_after: shown('Mentioned after', 'Only reviews posted after this time', {
    examples: ['2024-01-01T00:00:00Z'],
  })(maybe(time)),
  mention_time_before: shown('Mentioned before', 'Only reviews posted before this time', {
    examples: ['2025-01-01T00:00:00Z'],
  })(maybe(time)),
  additional_fields: shown('Additional fields', 'Attributes the export adds on request', {
    examples: [['brand', 'visitRecordId']],
  })(defaulted(list(oneOfWords('brand', 'visitRecordId')), ['brand', 'visitRecordId'])),
  page_size: shown('Page size', 'Reviews asked for with one request', { examples: [1000] })(
    defaulted(integer(10, 1000), 1000),
  ),
  export_order: shown(
    'Export order',
    'What is known of the order of the export; modified_time only if the operator of the service promises it',
    { examples: ['unspecified'] },
  )(defaulted(oneOfWords('unspecified', 'modified_time'), 'unspecified')),
  entities: shown(
    'Entities',
    'Whose comments, transparency reviews and ratings are read; none: nobody',
  )(
    section(
      ordered({
        person_ids: shown('Persons', 'Ids of physicians', { examples: [['500057']] })(defaulted(list(text), [])),
        location_ids: shown('Locations', 'Ids of locations', { examples: [['1034']] })(defaulted(list(text), [])),
        entity_ids: shown('Roll-up entities', 'Ids of roll-up entities', { examples: [['7']] })(
          defaulted(list(text), []),
        ),
        from_reviews: shown(
          'From reviews',
          'Also those that the exported reviews name',
        )(
          section(
            ordered({
              locations: shown('Locations', 'Take the ids of locations in reviews for location ids', {
                examples: [false],
              })(defaulted(t.boolean, false)),
              providers: shown('Providers', 'Take this attribute of providers in reviews for person ids', {
                examples: ['none'],
              })(defaulted(oneOfWords('none', 'id', 'npi'), 'none')),
            }),
          ),
        ),
      }),
    ),
  ),
  feedback_filters: shown(
    'Feedback filters',
    'Which comments and transparency reviews are read',
  )(
    section(
      ordered({
        min_threshold: shown('Least rating', 'Only ratings of at least this', { examples: [0] })(maybe(number(0, 5))),
        min_survey_count: shown('Least surveys', 'Only entities with at least so many surveys', { examples: [0] })(
          maybe(integer(0)),
        ),
        min_rating_count: shown('Least ratings', 'Only entities with at least so many ratings', { examples: [-1] })(
          maybe(integer(-1)),
        ),
        min_word_count: shown('Least words', 'Only texts of at least so many words', { examples: [0] })(
          maybe(integer(0)),
        ),
        additional_fields: shown('Additional fields', 'Attributes the operations add on request', {
          examples: [['brand']],
        })(maybe(list(text))),
        per_page: shown('Page size', 'Rows asked for with one request', { examples: [100] })(
          defaulted(integer(1, 1000), 100),
        ),
        days: shown('Days', 'What entity_ratings looks back on', { examples: [365] })(
          defaulted(integer(1, 36_500), 365),
        ),
      }),
    ),
  ),
  feedback_lookback_days: shown(
    'Feedback lookback (days)',
    'How far comments and transparency reviews are read again for late responses',
    { examples: [30] },
  )(defaulted(integer(0, 3650), 30)),
  lookups: shown(
    'Lookups',
    'Where the two lookup operations are; without, sources and categories come from reviews',
  )(
    section(
      ordered({
        sources: shown('Sources', 'The lookup of sources')(maybe(lookup)),
        categories: shown('Categories', 'The lookup of categories')(maybe(lookup)),
      }),
    ),
  ),
  on_unknown_attribute: shown(
    'Unknown attributes',
    'keep collects them in unknown_attributes, drop leaves them out, fail ends the stream',
    { examples: ['keep'] },
  )(defaulted(oneOfWords('keep', 'drop', 'fail'), 'keep')),
  deletes: shown(
    'Deletions',
    'separate keeps them in deleted_reviews alone; tombstones also marks deleted reviews in reviews',
    { examples: ['separate'] },
  )(defaulted(oneOfWords('separate', 'tombstones'), 'separate')),
  privacy: shown(
    'Privacy',
    'What must not leave as it came, by path such as export.contents.response or comments.comment',
  )(
    section(
      ordered({
        drop: shown('Drop', 'Paths of attributes that are left out', { examples: [['export.taskDetails.ownerEmail']] })(
          defaulted(list(text), []),
        ),
        hash: shown('Hash', 'Paths of attributes that leave as HMAC-SHA-256 in hex', {
          examples: [['export.visitRecordId']],
        })(defaulted(list(text), [])),
        hash_key: shown('Hash key', 'The key of the hashes: the same key gives the same hashes', {
          ...secret,
          examples: ['a long random text'],
        })(maybe(text)),
      }),
    ),
  ),
  ...limits,
  max_response_mb: shown('Largest answer (MB)', 'A larger answer is refused and asked for again in halves', {
    examples: [64],
  })(defaulted(integer(1, 1024), 64)),
  partition: shown(
    'Partition',
    'The share of a backfill that this process reads, beside others with the same count',
  )(
    maybe(
      ordered({
        index: shown('Index', 'Which share, from 0', { examples: [0] })(integer(0, 999)),
        count: shown('Count', 'How many processes share the backfill', { examples: [8] })(integer(1, 1000)),
      }),
    ),
  ),
  snapshot_path: shown('Snapshot file', 'Also write what is read into this DuckDB file', {
    examples: ['/data/reviews.duckdb'],
  })(maybe(text)),
})
export type SourceConfig = t.TypeOf<typeof SourceConfig>

/** The form that platforms draw: spec/source.json. */
export const sourceSpec: JsonSchema = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  title: 'Feedback Data Service',
  ...toJsonSchema(SourceConfig),
}

/** A configuration and the keys in it that mean nothing to us; a failure names every wrong key path. */
export const readConfig = configReader(SourceConfig, sourceSpec)

/** Where the documentation of the source stands. */
export const documentationUrl = 'https://docs.airbyte.com/integrations/sources/feedback'
