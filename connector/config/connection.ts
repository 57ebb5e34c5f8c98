import * as t from 'io-ts'
import {
  annotate,
  describeField,
  enumField,
  fieldWithDefault,
  integerField,
  oneOfField,
  optionalField,
  optionalGroupField,
  orderFields,
  patternField,
  sectionField,
  switchedGroupField,
  textField,
} from '../cdk'

/** Keywords of a setting whose value is secret. */
export const secretKeywords = { airbyte_secret: true, writeOnly: true }

const urlField = patternField(/^https?:\/\/[^\s/$.?#][^\s]*$/, { format: 'uri' })

const AccessTokenFields = orderFields({
  auth_type: describeField(
    'Type',
    'An access token that was issued for you',
  )(annotate({ default: 'access_token' })(t.literal('access_token'))),
  access_token: describeField('Access token', 'The token sent with every request', {
    ...secretKeywords,
    examples: ['a1b2c3…'],
  })(textField),
})

const TokenRequestFields = orderFields({
  encoding: describeField('Encoding', 'How the application id and secret are sent; form if left out', {
    examples: ['json'],
  })(optionalField(enumField('json', 'form', 'basic'))),
  id_field: describeField('Id field', 'Name of the field that holds the application id; appId if left out', {
    examples: ['applicationId'],
  })(optionalField(textField)),
  secret_field: describeField('Secret field', 'Name of the field that holds the secret; appSecret if left out', {
    examples: ['applicationSecret'],
  })(optionalField(textField)),
  token_field: describeField('Token field', 'Dotted path of the token in the response', {
    examples: ['accessToken'],
  })(fieldWithDefault(textField, 'accessToken')),
  expires_in_field: describeField(
    'Lifetime field',
    'Dotted path in the response of the expiry time, or of the lifetime in seconds',
    { examples: ['expiresIn'] },
  )(fieldWithDefault(textField, 'expiresIn')),
})

const ApplicationFields = orderFields({
  auth_type: describeField(
    'Type',
    'An application id and secret that are exchanged for tokens',
  )(annotate({ default: 'application' })(t.literal('application'))),
  application_id: describeField('Application id', 'From the API settings page of the platform', {
    examples: ['app-123'],
  })(textField),
  application_secret: describeField('Application secret', 'From the API settings page of the platform', {
    ...secretKeywords,
    examples: ['s3cr3t'],
  })(textField),
  token_url: describeField(
    'Token URL',
    'Address of the token operation, or its path below the base URL; /api/service/v1/token/create if left out',
    { examples: ['https://feedback.example.com/oauth/token'] },
  )(optionalField(patternField(/^(https?:\/\/[^\s/$.?#][^\s]*|\/[^\s]*)$/))),
  token_request: describeField(
    'Token request',
    'The form of the token request, if it differs from the default',
  )(sectionField(TokenRequestFields)),
})

/** The address of the service and the credentials, the same in both configurations. */
export const serviceFields = {
  base_url: describeField(
    'Base URL',
    'Address of the service; may contain a path, to which operation paths are appended',
    {
      examples: ['https://feedback.example.com'],
    },
  )(urlField),
  allow_http: describeField('Allow http', 'Accept an address without TLS, for a service inside your own network', {
    examples: [false],
  })(fieldWithDefault(t.boolean, false)),
  credentials: describeField(
    'Credentials',
    'How the connector authenticates',
  )(oneOfField('auth_type', { access_token: AccessTokenFields, application: ApplicationFields })),
}

/** Rate limit and timeouts, the same in both configurations. */
export const limitFields = {
  rate_limit: describeField(
    'Rate limit',
    'How many requests may be sent',
  )(
    sectionField(
      orderFields({
        requests_per_minute: describeField(
          'Requests per minute',
          'Maximum requests per minute; if left out, the rate adapts to the service',
          {
            examples: [300],
          },
        )(optionalField(integerField(1))),
        max_concurrency: describeField('Concurrent requests', 'Maximum simultaneous requests', { examples: [4] })(
          fieldWithDefault(integerField(1, 64), 4),
        ),
        redis_url: describeField(
          'Redis URL',
          'Processes with the same Redis share this rate limit; if left out, each process has its own',
          { ...secretKeywords, examples: ['redis://:password@redis.internal:6379'] },
        )(optionalField(textField)),
      }),
    ),
  ),
  timeouts: describeField(
    'Timeouts',
    'Maximum waiting times, in seconds',
  )(
    sectionField(
      orderFields({
        connect_seconds: describeField('Connect', 'Time to connect', { examples: [10] })(
          fieldWithDefault(integerField(1, 600), 10),
        ),
        response_seconds: describeField('Response', 'Time for a complete response', { examples: [120] })(
          fieldWithDefault(integerField(1, 3600), 120),
        ),
        max_wait_seconds: describeField(
          'Longest wait',
          'The longest Retry-After to wait for; a longer one fails the run',
          {
            examples: [600],
          },
        )(fieldWithDefault(integerField(1, 7200), 600)),
      }),
    ),
  ),
}

/** How a lookup is paged. */
const lookupPagingField = describeField(
  'Paging',
  'How to request pages, if there are several; requires page_param',
)(
  optionalGroupField(
    orderFields({
      page_param: describeField('Page parameter', 'Name of the parameter with the number of the page', {
        examples: ['page'],
      })(textField),
      first_page: describeField('First page', 'Number of the first page', { examples: [1] })(
        fieldWithDefault(integerField(0, 1), 1),
      ),
      size_param: describeField(
        'Size parameter',
        'Name of the parameter with the size of a page; not sent if left out',
        {
          examples: ['size'],
        },
      )(optionalField(textField)),
      size: describeField('Page size', 'Records in a page', { examples: [100] })(
        fieldWithDefault(integerField(1, 10_000), 100),
      ),
      total_pages_path: describeField(
        'Path of the total',
        'Dotted path of the number of pages in the response; if left out, a page shorter than the others is the last',
        { examples: ['totalPages'] },
      )(optionalField(textField)),
    }),
  ),
)

const enabledField = (published: string) =>
  describeField('Enabled', `true reads ${published} unless the other keys say otherwise; false turns the lookup off`, {
    examples: [true],
  })(optionalField(t.boolean))

const lookupMethodField = describeField('Method', 'GET or POST', { examples: ['GET'] })(
  fieldWithDefault(enumField('GET', 'POST'), 'GET'),
)

const lookupPathField = <A>(codec: t.Type<A, unknown>, example: string) =>
  describeField('Path', 'Path of the operation, after the base URL', { examples: [example] })(codec)

const lookupPath: t.Type<string, unknown> = patternField(/^\//) as t.Type<string, unknown>
const lookupKey = textField as t.Type<string, unknown>

/** A lookup whose records are identified by a key from the config. */
const recordLookupFields = <A>(pathCodec: t.Type<A, unknown>, keyCodec: t.Type<A, unknown>) => ({
  method: lookupMethodField,
  path: lookupPathField(pathCodec, '/api/reputation/v1/sources'),
  records_path: describeField('Records path', 'Dotted path of the records in the response', {
    examples: ['sources'],
  })(fieldWithDefault(t.string as t.Type<string, unknown>, '')),
  primary_key: describeField('Primary key', 'The attribute that identifies a record', { examples: ['id'] })(keyCodec),
  paging: lookupPagingField,
})

export const categoryLookupField = optionalGroupField(orderFields(recordLookupFields(lookupPath, lookupKey)))

const sourceEnabledField = enabledField('GET /api/reputation/v1/sources, or the reviews if the service refuses that,')
export const sourceLookupField = switchedGroupField(
  orderFields({
    enabled: sourceEnabledField,
    ...recordLookupFields(optionalField(lookupPath), optionalField(lookupKey)),
  }),
  orderFields({ enabled: sourceEnabledField, ...recordLookupFields(lookupPath, lookupKey) }),
)

const locationLookupFields = <A>(pathCodec: t.Type<A, unknown>) =>
  orderFields({
    enabled: enabledField('GET /api/v2/entity/locations'),
    method: lookupMethodField,
    path: lookupPathField(pathCodec, '/api/v2/entity/locations'),
    records_path: describeField('Records path', 'Dotted path of the locations in the response', {
      examples: ['data'],
    })(fieldWithDefault(t.string as t.Type<string, unknown>, 'data')),
    paging: lookupPagingField,
  })

/** The lookup of the locations that the service manages, the same in both configurations. */
export const locationLookupField = switchedGroupField(
  locationLookupFields(optionalField(lookupPath)),
  locationLookupFields(lookupPath),
)

export type LocationLookupConfig = NonNullable<t.TypeOf<typeof locationLookupField>>
export type LookupPagingConfig = NonNullable<t.TypeOf<typeof lookupPagingField>>

const ConnectionCodec = t.type({ ...serviceFields, ...limitFields })

/** The part of a configuration with the service's address, our credentials, and the limits on requests. */
export type ConnectionConfig = t.TypeOf<typeof ConnectionCodec>
