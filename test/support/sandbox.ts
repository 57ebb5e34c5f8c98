import { onTestFinished } from 'vitest'
import type { ServiceKind } from '../../connector/sandbox/server/handlers'
import { type Sandbox, type SandboxOptions, startSandbox } from '../../connector/sandbox/start'

export const epochTime = '1970-01-01T00:00:00.000Z'
export const operationPaths = {
  retrieveReviews: '/api/external/bsr/v2/reviews',
  comments: '/api/bsr/comments',
  createVisitRecords: '/api/service/visitrecord/create',
  syncLocations: '/api/entity/sync/locations',
  exportReviews: '/api/reputation/v1/reviews',
  exportDeletedReviews: '/api/reputation/v1/deleted-reviews',
  lookupSources: '/api/reputation/v1/lookup/sources',
} as const

/**
 * What the sandboxes of the tests behave like: SANDBOX_LIKE=published, as test/slow/run sets it, runs the tests of
 * reading and writing against what deployments do where the specification is silent.
 */
export const sandboxKind: ServiceKind = process.env.SANDBOX_LIKE === 'published' ? 'published' : 'specification'

/** A sandbox of the kind that the tests run against, unless a test needs one kind. The test closes it. */
export const startTestSandbox = (options: SandboxOptions = {}): Promise<Sandbox> =>
  startSandbox({ like: sandboxKind, ...options })

/** The configured lookups of such a sandbox; published deployments show none of categories. */
export const lookupSettings =
  sandboxKind === 'published'
    ? { sources: { path: '/api/reputation/v1/sources', records_path: '', primary_key: 'id' } }
    : Object.fromEntries(
        ['sources', 'categories'].map((name) => [
          name,
          { path: `/api/reputation/v1/lookup/${name}`, records_path: name, primary_key: 'id' },
        ]),
      )

/** The application of such a sandbox as credentials of a config. */
export const applicationCredentials = ({ applicationId, applicationSecret }: Sandbox) => ({
  auth_type: 'application',
  application_id: applicationId,
  application_secret: applicationSecret,
})

/** A small sandbox that ends with the test. */
export const startSmallSandbox = async (options: SandboxOptions = {}): Promise<Sandbox> => {
  const sandbox = await startTestSandbox({ reviews: 100, ...options })
  onTestFinished(() => sandbox.close())
  return sandbox
}

/**
 * A sandbox whose reviews change after every page, with its own clock, so that no test has to wait until changes are in
 * the past. `stopChanges` ends the changes and moves the clock on.
 */
export const startChangingSandbox = async ({ churn, ...options }: SandboxOptions & { readonly churn: Churn }) => {
  let clock = Date.now()
  const sandbox = await startTestSandbox({
    ...options,
    churn,
    until: clock - 60_000,
    now: () => {
      clock += 7
      return clock
    },
  })
  return {
    sandbox,
    now: () => clock,
    startChanges: () => sandbox.setChurn(churn),
    stopChanges: (millis: number) => {
      sandbox.setChurn({})
      clock += millis
    },
  }
}

type Churn = NonNullable<SandboxOptions['churn']>

/** A JSON request with a valid token in both headers. */
export const postJson = (
  { url, accessToken }: Pick<Sandbox, 'url' | 'accessToken'>,
  path: string,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<Response> =>
  fetch(url + path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', accessToken, 'Access-Token': accessToken, ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })

/** Asks for a token, as an application with this secret. */
export const requestToken = (
  { tokenUrl, applicationId: appId, applicationSecret }: Sandbox,
  appSecret = applicationSecret,
): Promise<Response> => fetch(tokenUrl, { method: 'POST', body: new URLSearchParams({ appId, appSecret }) })

export const getPath = (
  { url, accessToken }: Sandbox,
  path: string,
  headers: Record<string, string> = {},
): Promise<Response> => fetch(url + path, { headers: { accessToken, 'Access-Token': accessToken, ...headers } })

/** The answer's JSON, as the test expects it to be. */
export const readJsonAnswer = async <A>(response: Response | Promise<Response>): Promise<A> =>
  (await (await response).json()) as A

/** A config that reads everything of a sandbox except the streams by entity. */
export const reviewsConfig = ({ url, accessToken }: Pick<Sandbox, 'url' | 'accessToken'>, more: object = {}) => ({
  base_url: url,
  start_date: '2000-01-01T00:00:00Z',
  credentials: { auth_type: 'access_token', access_token: accessToken },
  ...more,
})

/** A config under which every stream of a sandbox has something to read. */
export const sandboxConfig = (sandbox: Pick<Sandbox, 'url' | 'accessToken'>, more: object = {}) =>
  reviewsConfig(sandbox, { entities: { location_ids: ['1001', '1002'], entity_ids: ['10'] }, ...more })
