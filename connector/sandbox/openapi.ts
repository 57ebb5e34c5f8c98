import * as t from 'io-ts'
import { type Lookups, lookupAt } from '../api/api'
import { ExportFilter } from '../api/model/export'
import { Status } from '../api/model/transparency'
import type { Route } from '../api/route'
import * as routes from '../api/routes'
import { type JsonSchema, toJsonSchema } from '../cdk/schema'
import type { Operation } from './operations'

type Described = Pick<Route<never, never>, 'name' | 'method' | 'path' | 'token' | 'send'> & {
  readonly request: t.Any
  readonly response: { readonly codec: t.Any }
}

/** The routes that export leave their answers as bytes; these are the envelopes around their records. */
const envelopes: Partial<Record<Operation, (record: t.Any) => t.Any>> = {
  exportReviews: (record) => t.type({ reviews: t.readonlyArray(record), filter: ExportFilter }),
  exportDeletedReviews: (record) => t.type({ reviews: t.readonlyArray(record), filter: ExportFilter }),
}

const meanings = {
  400: 'Invalid request',
  401: 'Missing or invalid access token',
  403: 'The token lacks permission for the requested data',
  413: 'More identifiers than the gateway lets pass',
  429: 'Request rate limit exceeded; Retry-After says for how long',
} as const

/** The error statuses of an operation (Endpoints, Errors); where none is shown, those that the sandbox gives. */
const statusesOf = (operation: Operation): ReadonlyArray<keyof typeof meanings> => {
  if (operation === 'issueToken') return [400, 401]
  if (operation === 'syncLocations') return [400, 403, 429]
  return operation === 'retrieveCommentsByForm' ? [400, 401, 403, 413, 429] : [400, 401, 403, 429]
}

const mediaTypes = { json: 'application/json', form: 'application/x-www-form-urlencoded' } as const

const propertiesOf = (schema: JsonSchema): ReadonlyArray<readonly [string, unknown]> =>
  Object.entries(typeof schema.properties === 'object' ? (schema.properties ?? {}) : {})

const requestOf = ({ send, request }: Described): JsonSchema => {
  const schema = toJsonSchema(request)
  if (send === 'query')
    return { parameters: propertiesOf(schema).map(([name, property]) => ({ name, in: 'query', schema: property })) }
  return { requestBody: { required: send === 'json', content: { [mediaTypes[send]]: { schema } } } }
}

const describe = (operation: Operation, route: Described): JsonSchema => {
  const codec = envelopes[operation]?.(route.response.codec) ?? route.response.codec
  return {
    operationId: operation,
    summary: route.name,
    security: route.token === undefined ? [] : [{ [route.token]: [] }],
    ...requestOf(route),
    responses: {
      200: { description: 'The answer', content: { 'application/json': { schema: toJsonSchema(codec) } } },
      ...Object.fromEntries(
        statusesOf(operation).map((status) => [status, { $ref: `#/components/responses/${status}` }]),
      ),
    },
  }
}

const error = { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } }

/** What only means something to Airbyte has no place in it. */
const plain = (schema: JsonSchema): JsonSchema =>
  JSON.parse(JSON.stringify(schema, (key, value) => (key === 'airbyte_type' ? undefined : value)))

/** The service as OpenAPI 3.1, read off the routes and their codecs. */
export const openApi = (lookups: Lookups = {}): JsonSchema => {
  const all: Readonly<Record<Operation, Described>> = {
    ...routes,
    lookupSources: lookupAt(routes.lookupSources, lookups.sources),
    lookupCategories: lookupAt(routes.lookupCategories, lookups.categories),
  }
  const paths: Record<string, Record<string, JsonSchema>> = {}
  for (const [operation, route] of Object.entries(all) as ReadonlyArray<[Operation, Described]>)
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: describe(operation, route) }
  return plain({
    openapi: '3.1.0',
    info: {
      title: 'Feedback Data Service',
      version: '0.1.0-preview.1',
      description:
        'As the sandbox serves it. The token exchange and the lookups are not shown by the specification: their form is the sandbox’s own.',
    },
    paths,
    components: {
      securitySchemes: {
        'Access-Token': { type: 'apiKey', in: 'header', name: 'Access-Token' },
        accessToken: { type: 'apiKey', in: 'header', name: 'accessToken' },
      },
      schemas: { Error: toJsonSchema(t.type({ status: Status })) },
      responses: Object.fromEntries(
        Object.entries(meanings).map(([status, description]) => [status, { description, content: error }]),
      ),
    },
  })
}
