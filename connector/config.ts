import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as t from 'io-ts'
import { configFailure, type Failure } from './cdk/failure'
import { decode } from './cdk/json'
import { annotate, type JsonSchema, toJsonSchema } from './cdk/schema'
import {
  alternatives,
  defaulted,
  integer,
  list,
  matching,
  maybe,
  oneOfWords,
  ordered,
  section,
  shown,
  text,
  time,
  undeclared,
} from './cdk/settings'

const secret = { airbyte_secret: true, writeOnly: true }

const url = matching(/^https?:\/\/[^\s/$.?#][^\s]*$/, { format: 'uri' })

const AccessToken = ordered({
  auth_type: shown(
    'Kind',
    'An access token that somebody issued for you',
  )(annotate({ default: 'access_token' })(t.literal('access_token'))),
  access_token: shown('Access token', 'The token sent with every request', { ...secret, examples: ['a1b2c3…'] })(text),
})

const TokenRequest = ordered({
  encoding: shown('Encoding', 'How the application id and secret are sent', { examples: ['json'] })(
    defaulted(oneOfWords('json', 'form', 'basic'), 'json'),
  ),
  id_field: shown('Id field', 'Name of the field that holds the application id', { examples: ['applicationId'] })(
    defaulted(text, 'applicationId'),
  ),
  secret_field: shown('Secret field', 'Name of the field that holds the application secret', {
    examples: ['applicationSecret'],
  })(defaulted(text, 'applicationSecret')),
  token_field: shown('Token field', 'Where the answer holds the token; a dotted path', { examples: ['accessToken'] })(
    defaulted(text, 'accessToken'),
  ),
  expires_in_field: shown('Lifetime field', 'Where the answer holds the lifetime in seconds', {
    examples: ['expiresIn'],
  })(defaulted(text, 'expiresIn')),
})

const Application = ordered({
  auth_type: shown(
    'Kind',
    'An application id and secret that are exchanged for tokens',
  )(annotate({ default: 'application' })(t.literal('application'))),
  application_id: shown('Application id', 'From the API settings page of the platform', { examples: ['app-123'] })(
    text,
  ),
  application_secret: shown('Application secret', 'From the API settings page of the platform', {
    ...secret,
    examples: ['s3cr3t'],
  })(text),
  token_url: shown('Token URL', 'Where the pair is exchanged for an access token', {
    examples: ['https://feedback.example.com/oauth/token'],
  })(url),
  token_request: shown(
    'Token request',
    'The form of the exchange, where it differs from the default',
  )(section(TokenRequest)),
})

export type Credentials = t.TypeOf<typeof AccessToken> | t.TypeOf<typeof Application>

/** The source's configuration (design.md, Config). */
export const SourceConfig = ordered({
  base_url: shown('Base URL', 'Address of the service; may hold a path, to which operation paths are appended', {
    examples: ['https://feedback.example.com'],
  })(url),
  allow_http: shown('Allow http', 'Accept an address without TLS, for a service inside your own network', {
    examples: [false],
  })(defaulted(t.boolean, false)),
  credentials: shown(
    'Credentials',
    'How the connector proves who it is',
  )(alternatives('auth_type', { access_token: AccessToken, application: Application })),
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
  rate_limit: shown(
    'Rate limit',
    'The budget of requests',
  )(
    section(
      ordered({
        requests_per_minute: shown('Requests per minute', 'Never exceeded; left out, the rate adapts to the service', {
          examples: [300],
        })(maybe(integer(1))),
        max_concurrency: shown('Concurrent requests', 'Requests under way at a time', { examples: [4] })(
          defaulted(integer(1, 64), 4),
        ),
      }),
    ),
  ),
  timeouts: shown(
    'Time-outs',
    'How long to wait, in seconds',
  )(
    section(
      ordered({
        connect_seconds: shown('Connect', 'For a connection', { examples: [10] })(defaulted(integer(1, 600), 10)),
        response_seconds: shown('Response', 'For a whole answer', { examples: [120] })(
          defaulted(integer(1, 3600), 120),
        ),
        max_wait_seconds: shown('Longest wait', 'The longest Retry-After that is sat out before the run fails', {
          examples: [600],
        })(defaulted(integer(1, 7200), 600)),
      }),
    ),
  ),
  max_response_mb: shown('Largest answer (MB)', 'A larger answer is refused and asked for again in halves', {
    examples: [64],
  })(defaulted(integer(1, 1024), 64)),
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
export const readConfig = (
  value: unknown,
): E.Either<Failure, { readonly config: SourceConfig; readonly unknownKeys: ReadonlyArray<string> }> =>
  pipe(
    decode(SourceConfig, withoutNulls(value)),
    E.bimap(
      (wrong) =>
        configFailure(
          `The config is wrong: ${wrong.map(({ path, problem }) => `${path || 'it'} ${problem}`).join('; ')}.`,
        ),
      (config) => ({ config, unknownKeys: undeclared(sourceSpec, value) }),
    ),
  )

/** Forms send null for a field that was left empty. */
const withoutNulls = (value: unknown): unknown =>
  t.UnknownRecord.is(value)
    ? Object.fromEntries(
        Object.entries(value).flatMap(([key, inner]) => (inner === null ? [] : [[key, withoutNulls(inner)]])),
      )
    : value

/** Where the documentation of the source stands. */
export const documentationUrl = 'https://docs.airbyte.com/integrations/sources/feedback'
