import * as t from 'io-ts'
import { annotate } from './cdk/schema'
import {
  alternatives,
  defaulted,
  integer,
  matching,
  maybe,
  oneOfWords,
  ordered,
  section,
  shown,
  text,
} from './cdk/settings'

/** Keywords of a setting that nobody may see. */
export const secret = { airbyte_secret: true, writeOnly: true }

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

/** Where the service is and who we are: the same in both configurations. */
export const access = {
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
}

/** How much the service is asked, and how long we wait: the same in both configurations. */
export const limits = {
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
        redis_url: shown(
          'Redis URL',
          'Where the processes that name the same Redis keep this budget together; left out, each process has its own',
          { ...secret, examples: ['redis://:password@redis.internal:6379'] },
        )(maybe(text)),
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
}

const Connection = t.type({ ...access, ...limits })
export type Connection = t.TypeOf<typeof Connection>
