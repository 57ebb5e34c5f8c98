import * as E from 'fp-ts/Either'
import { describe, expect, it } from 'vitest'
import { sourceFormat } from '../../connector/config/source'

const right = {
  base_url: 'https://feedback.example.com/tenant',
  credentials: { auth_type: 'access_token', access_token: 'S3CR3T' },
  start_date: '2024-01-01T00:00:00Z',
}
const message = (value: unknown) => {
  const result = sourceFormat.decode(value)
  return E.isLeft(result) ? result.left.message : ''
}

describe('the configuration of the source', () => {
  it('gets every default', () => {
    expect(sourceFormat.decode(right)).toMatchObject(
      E.right({
        unknownKeys: [],
        config: {
          allow_http: false,
          lookback_minutes: 10,
          additional_fields: ['brand', 'visitRecordId'],
          page_size: 1000,
          on_unknown_attribute: 'keep',
          rate_limit: { max_concurrency: 4 },
          timeouts: { connect_seconds: 10, response_seconds: 120, max_wait_seconds: 600 },
          max_response_mb: 64,
        },
      }),
    )
  })

  it('needs an id and a secret alone, and keeps a token request as it is given', () => {
    const decodeCredentials = (more: object) => {
      const credentials = { auth_type: 'application', application_id: 'a', application_secret: 's', ...more }
      return sourceFormat.decode({ ...right, credentials })
    }
    expect(decodeCredentials({})).toMatchObject(
      E.right({
        config: { credentials: { token_request: { token_field: 'accessToken', expires_in_field: 'expiresIn' } } },
      }),
    )
    expect(decodeCredentials({ token_url: '/oauth/token', token_request: { encoding: 'basic' } })).toMatchObject(
      E.right({ config: { credentials: { token_url: '/oauth/token', token_request: { encoding: 'basic' } } } }),
    )
    expect(E.isLeft(decodeCredentials({ token_url: 'oauth/token' }))).toBe(true)
  })

  it('treats null, which forms send for an empty field, as left out', () => {
    expect(E.isRight(sourceFormat.decode({ ...right, sources: null, rate_limit: { requests_per_minute: null } }))).toBe(
      true,
    )
  })

  it.each([[[]], [['']], [[null, '']], ['[]'], ['']])(
    'treats %j, which forms send for an empty list, as left out',
    (empty) => {
      const lists = {
        sources: empty,
        additional_fields: empty,
        entities: { person_ids: empty },
        privacy: { drop: empty },
      }
      expect(sourceFormat.decode({ ...right, ...lists })).toEqual(sourceFormat.decode(right))
      expect(E.isRight(sourceFormat.decode(right))).toBe(true)
    },
  )

  it('takes numbers and booleans as text, and no notice of spaces around what has a fixed form', () => {
    const texts = {
      base_url: ` ${right.base_url}\n`,
      start_date: '2024-01-01T00:00:00Z ',
      page_size: '500',
      allow_http: 'True',
      sources: ['1', '2'],
      lookups: { sources: 'true' },
      rate_limit: { max_concurrency: '4', requests_per_minute: ' 60 ' },
    }
    const values = {
      ...{ page_size: 500, allow_http: true, sources: [1, 2], lookups: { sources: true } },
      rate_limit: { max_concurrency: 4, requests_per_minute: 60 },
    }
    expect(sourceFormat.decode({ ...right, ...texts })).toEqual(sourceFormat.decode({ ...right, ...values }))
    expect(E.isRight(sourceFormat.decode({ ...right, ...values }))).toBe(true)
  })

  it.each([
    [{ access_token: 'S3CR3T' }, 'access_token'],
    [{ access_token: 'S3CR3T', application_id: '', application_secret: null }, 'access_token'],
    [{ application_id: 'a', application_secret: 'S3CR3T' }, 'application'],
    [{ auth_type: '', application_id: 'a', application_secret: 'S3CR3T', token_url: '/t' }, 'application'],
  ])('infers the kind of credentials from the keys given: %j', (credentials, auth_type) => {
    const decoded = sourceFormat.decode({ ...right, credentials })
    expect(decoded).toMatchObject(E.right({ config: { credentials: { auth_type } }, unknownKeys: [] }))
  })

  it.each([
    [{ access_token: 'S3CR3T', application_id: 'a' }, 'credentials.auth_type is missing'],
    [{}, 'credentials.auth_type is missing'],
    [{ application_id: 'a' }, 'credentials.application_secret is missing'],
  ])('asks for what cannot be inferred: %j', (credentials, problem) =>
    expect(message({ ...right, credentials })).toContain(problem),
  )

  it.each<[string, unknown, string]>([
    ['a number', 5, 'it is a number'],
    ['an empty object', {}, 'base_url is missing'],
    ['an address that is not a URL', { ...right, base_url: 'feedback' }, 'base_url'],
    [
      'an unknown kind of credentials',
      { ...right, credentials: { auth_type: 'x' } },
      'one of access_token, application',
    ],
    [
      'a token left out',
      { ...right, credentials: { auth_type: 'access_token' } },
      'credentials.access_token is missing',
    ],
    ['a month', { ...right, start_date: '2024-01' }, 'such as "2024-01-01T00:00:00Z"'],
    ['a time without zone', { ...right, start_date: '2024-01-01T00:00:00' }, 'such as "2024-01-01T00:00:00Z"'],
    ['a day that does not exist', { ...right, start_date: '2023-02-29' }, 'start_date'],
    ['a time of such a day', { ...right, mention_time_after: '2024-02-30T00:00:00Z' }, 'mention_time_after'],
    ['a date that does not exist', { ...right, start_date: '2024-13-45T00:00:00Z' }, 'start_date'],
    ['a page too large', { ...right, page_size: 1001 }, 'page_size is a number, expected integer from 10 to 1000'],
    ['a source that is no number', { ...right, sources: [1, 'a'] }, 'sources.1'],
    ['a field that is not offered', { ...right, additional_fields: ['colour'] }, 'brand, visitRecordId'],
    [
      'an inner value',
      { ...right, rate_limit: { max_concurrency: 'four' } },
      'rate_limit.max_concurrency must be integer from 1 to 64',
    ],
  ])('names the path of the wrong key: %s', (_, value, expected) => {
    expect(message(value)).toContain(expected)
    expect(message(value)).not.toContain('S3CR3T')
  })

  it('names keys of the other kind of credentials, which have no effect', () => {
    const credentials = { auth_type: 'access_token', access_token: 'a', application_id: 'b', token_request: {} }
    const result = sourceFormat.decode({ ...right, credentials })
    expect(E.isRight(result) && result.right.unknownKeys).toEqual([
      'credentials.application_id',
      'credentials.token_request',
    ])
  })

  it('takes lists and objects as JSON text, and lists as words, as some platforms keep settings', () => {
    const parsed = {
      sources: [1, 2],
      additional_fields: ['brand'],
      entities: { person_ids: ['7', '8'], from_reviews: { locations: true } },
      lookups: { sources: { path: '/sources', primary_key: 'id' } },
      feedback_filters: { min_threshold: 2.5 },
    }
    const texts = {
      ...right,
      credentials: JSON.stringify(right.credentials),
      sources: ' [1, 2]',
      additional_fields: 'brand',
      entities: JSON.stringify({ person_ids: '["7","8"]', from_reviews: '{"locations":true}' }),
      lookups: { sources: '{"path":"/sources","primary_key":"id"}' },
      feedback_filters: { min_threshold: '2.5' },
    }
    expect(sourceFormat.decode(texts)).toEqual(sourceFormat.decode({ ...right, ...parsed }))
    expect(E.isRight(sourceFormat.decode(texts))).toBe(true)
  })

  it.each([
    ['sources', '[1,2', 'sources'],
    ['sources', 'one', 'sources.0'],
    ['entities', 'person_ids', 'entities'],
    ['credentials', '{"auth_type": "access_token", "access_token": "S3CR3T"', 'credentials'],
    ['partition', '[0,1]', 'partition'],
    ['feedback_filters', '{"min_threshold":"high"}', 'feedback_filters.min_threshold'],
  ])('names a setting whose text is neither: %s %s', (key, value, path) => {
    expect(message({ ...right, [key]: value })).toContain(`The config is wrong: ${path} `)
    expect(message({ ...right, [key]: value })).not.toContain('S3CR3T')
  })

  it.each(['2024-01-31', '2024-02-29', '2000-12-31'])('takes the date %s for its first instant in UTC', (date) => {
    const times = { start_date: date, mention_time_after: date, mention_time_before: '2030-01-01' }
    expect(sourceFormat.decode({ ...right, ...times })).toMatchObject(
      E.right({
        config: {
          start_date: `${date}T00:00:00Z`,
          mention_time_after: `${date}T00:00:00Z`,
          mention_time_before: '2030-01-01T00:00:00Z',
        },
      }),
    )
    const { start_date } = sourceFormat.spec.properties as Readonly<Record<string, { readonly pattern: string }>>
    expect(date).toMatch(new RegExp(start_date?.pattern ?? ''))
  })

  it('names keys without effect, at any depth', () => {
    const result = sourceFormat.decode({ ...right, pagesize: 1, rate_limit: { per_minute: 3 } })
    expect(E.isRight(result) && result.right.unknownKeys).toEqual(['pagesize', 'rate_limit.per_minute'])
  })
})
