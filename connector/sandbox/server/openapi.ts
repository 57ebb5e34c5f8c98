import * as t from 'io-ts'
import { EnvelopeStatus, ExportFilter, type LookupRoutes, moveLookup, type Route, routes } from '../../api'
import { type JsonSchema, toJsonSchema } from '../../cdk'
import type { OperationName } from '../operations/operation'
import { publishedEntitiesRoute, publishedSourcesRoute, publishedTokenRoute, type ServiceKind } from './handlers'

type RouteDescription = Pick<Route<never, never>, 'name' | 'method' | 'path' | 'tokenHeader' | 'encoding'> & {
  readonly request: t.Any
  readonly response: { readonly codec: t.Any }
}

/** The routes described for a service of this kind; `lookups` moves those that the specification does not show. */
const servedRoutes = (
  kind: ServiceKind,
  lookups: LookupRoutes,
): Readonly<Partial<Record<OperationName, RouteDescription>>> => {
  const { lookupSources, lookupCategories, lookupLocations, issueToken, ...specified } = routes
  if (kind === 'published')
    return {
      ...specified,
      lookupSources: publishedSourcesRoute,
      lookupLocations,
      listEntities: publishedEntitiesRoute,
      issueToken: publishedTokenRoute,
    }
  return {
    ...specified,
    lookupSources: moveLookup(lookupSources, lookups.sources),
    lookupCategories: moveLookup(lookupCategories, lookups.categories),
    ...(lookups.locations === undefined ? {} : { lookupLocations: moveLookup(lookupLocations, lookups.locations) }),
    issueToken,
  }
}

/** The routes of the exports decode only records. These are the envelopes around the records. */
const exportEnvelopes: Partial<Record<OperationName, (record: t.Any) => t.Any>> = {
  exportReviews: (record) => t.type({ reviews: t.readonlyArray(record), filter: ExportFilter }),
  exportDeletedReviews: (record) => t.type({ reviews: t.readonlyArray(record), filter: ExportFilter }),
}

const statusMeanings = {
  400: 'Invalid request',
  401: 'Missing or invalid access token',
  403: 'The token lacks permission for the requested data',
  413: 'More identifiers than the gateway allows',
  429: 'Request rate limit exceeded; Retry-After says for how long',
} as const

/** The error statuses of an operation in the specification, or those of the sandbox if it names none. */
const errorStatuses = (operation: OperationName): ReadonlyArray<keyof typeof statusMeanings> => {
  if (operation === 'issueToken') return [400, 401]
  if (operation === 'syncLocations') return [400, 403, 429]
  return operation === 'retrieveCommentsByForm' ? [400, 401, 403, 413, 429] : [400, 401, 403, 429]
}

const mediaTypes = { json: 'application/json', form: 'application/x-www-form-urlencoded' } as const

const schemaProperties = (schema: JsonSchema): ReadonlyArray<readonly [string, unknown]> =>
  Object.entries(typeof schema.properties === 'object' ? (schema.properties ?? {}) : {})

const describeRequest = ({ encoding, request }: RouteDescription): JsonSchema => {
  const schema = toJsonSchema(request)
  if (encoding === 'query')
    return { parameters: schemaProperties(schema).map(([name, property]) => ({ name, in: 'query', schema: property })) }
  return { requestBody: { required: encoding === 'json', content: { [mediaTypes[encoding]]: { schema } } } }
}

const describeOperation = (operation: OperationName, route: RouteDescription): JsonSchema => {
  const codec = exportEnvelopes[operation]?.(route.response.codec) ?? route.response.codec
  return {
    operationId: operation,
    summary: route.name,
    security: route.tokenHeader === undefined ? [] : [{ [route.tokenHeader]: [] }],
    ...describeRequest(route),
    responses: {
      200: { description: 'The answer', content: { 'application/json': { schema: toJsonSchema(codec) } } },
      ...Object.fromEntries(
        errorStatuses(operation).map((status) => [status, { $ref: `#/components/responses/${status}` }]),
      ),
    },
  }
}

const errorContent = { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } }

/** Removes the keyword `airbyte_type`, which only Airbyte understands. */
const removeAirbyteTypes = (schema: JsonSchema): JsonSchema =>
  JSON.parse(JSON.stringify(schema, (key, value) => (key === 'airbyte_type' ? undefined : value)))

/** The service as an OpenAPI 3.1 document, derived from the routes and their codecs. */
export const describeService = (lookups: LookupRoutes = {}, kind: ServiceKind = 'specification'): JsonSchema => {
  const descriptions = servedRoutes(kind, lookups)
  const paths: Record<string, Record<string, JsonSchema>> = {}
  for (const [operation, route] of Object.entries(descriptions) as ReadonlyArray<[OperationName, RouteDescription]>)
    paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: describeOperation(operation, route) }
  return removeAirbyteTypes({
    openapi: '3.1.0',
    info: {
      title: 'Feedback Data Service',
      version: '0.1.0-preview.1',
      description:
        'As the sandbox serves it. The specification leaves out the token exchange, which follows published ' +
        'deployments here, and the lookups, whose format is the sandbox’s own.',
    },
    paths,
    components: {
      securitySchemes: {
        'Access-Token': { type: 'apiKey', in: 'header', name: 'Access-Token' },
        accessToken: { type: 'apiKey', in: 'header', name: 'accessToken' },
      },
      schemas: { Error: toJsonSchema(t.type({ status: EnvelopeStatus })) },
      responses: Object.fromEntries(
        Object.entries(statusMeanings).map(([status, description]) => [status, { description, content: errorContent }]),
      ),
    },
  })
}
