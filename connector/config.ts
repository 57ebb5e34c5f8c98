import type * as t from 'io-ts'
import { type JsonSchema, toJsonSchema } from './cdk/schema'
import { defaulted, integer, list, maybe, oneOfWords, ordered, section, shown, text, time } from './cdk/settings'
import { configReader } from './config-reader'
import { access, limits, secret } from './connection'

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
    maybe(list(integer(0))),
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
    'What must not leave as it came, by path such as export.contents.response',
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
