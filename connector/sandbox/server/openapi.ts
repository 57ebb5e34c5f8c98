import * as t from 'io-ts'
import { EnvelopeStatus, ExportFilter, type LookupRoutes } from '../../api'
import { type JsonSchema, toJsonSchema } from '../../cdk'
import type { OperationName } from '../operations/operation'
import { type RouteDescription, type ServiceKind, servedRoutes } from './handlers'

/** The routes of the exports decode only records; these are the envelopes around the records. */
const exportEnvelopes: Partial<Record<OperationName, (record: t.Any) => t.Any>> = {
  exportReviews: (record) => t.type({ reviews: t.readonlyArray(record), filter: ExportFilter }),
  exportDeletedReviews: (record) => t.type({ reviews: t.readonlyArray(record), filter: ExportFilter }),
}

const statusMeanings = {
  400: 'Invalid request',
  401: 'Missing or invalid access token',
  403: 'The token lacks permission for the requested data',
  413: 'More identifiers than the gateway lets pass',
  429: 'Request rate limit exceeded; Retry-After says for how long',
} as const

/** The error statuses of an operation in the specification; if it names none, those of the sandbox. */
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
        'As the sandbox serves it. The token exchange and the lookups are not shown by the specification: their form is the sandbox’s own.',
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

/** An HTML page that lists the operations of `/openapi.json` to try them in a browser; it loads nothing from other hosts. */
export const docsPage = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Feedback Data Service</title>
<style>
  :root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif }
  body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
  summary { cursor: pointer; padding: .3rem 0 }
  textarea, input { width: 100%; box-sizing: border-box; font: 13px/1.4 ui-monospace, monospace }
  pre { overflow: auto; max-height: 30rem; border: 1px solid; padding: .5rem; font-size: 13px }
</style>
<h1>Feedback Data Service</h1>
<p>The sandbox, described by <a href="/openapi.json">openapi.json</a>.</p>
<label>Access token, from the line that the sandbox printed <input id="token" autocomplete="off"></label>
<div id="operations"></div>
<script>
const from = '1970-01-01T00:00:00.000Z'
const examples = {
  retrieveReviews: { locationId: '1001', perPage: 5 },
  retrieveComments: { locationId: '1001', perPage: '5' },
  retrieveCommentsByForm: { locationId: ['1001', '1002'], perPage: '5' },
  createVisitRecords: [{ name: 'Ada Example', email: 'ada@example.org', locationCode: 'LOC-1001', npi: '1234567893', visitRecordId: 'V-1' }],
  syncLocations: [{ code: 'LOC-9001', codeType: 'INTERNAL', active: true, name: 'New Clinic' }],
  exportReviews: { modifiedTimeFrom: from, limit: 5, additionalFields: ['brand'] },
  exportDeletedReviews: { modifiedTimeFrom: from, limit: 5 },
  issueToken: { applicationId: '', applicationSecret: '' },
}
const createElement = (name, properties, ...children) => {
  const element = Object.assign(document.createElement(name), properties)
  element.append(...children)
  return element
}
const pairs = (value) =>
  new URLSearchParams(Object.entries(value).flatMap(([key, field]) => [field].flat().map((item) => [key, item])))
const sendRequest = async (path, method, operation, text) => {
  const value = JSON.parse(text)
  const form = operation.requestBody?.content['application/x-www-form-urlencoded'] !== undefined
  const headers = {}
  for (const scheme of operation.security) headers[Object.keys(scheme)[0]] = document.getElementById('token').value
  if (method === 'get') return fetch(path + '?' + pairs(value), { headers })
  if (form) return fetch(path, { method, headers, body: pairs(value) })
  headers['Content-Type'] = 'application/json'
  return fetch(path, { method, headers, body: text })
}
const createPanel = (path, method, operation) => {
  const input = createElement('textarea', { rows: 6, value: JSON.stringify(examples[operation.operationId] ?? {}, null, 2) })
  const output = createElement('pre', { textContent: '' })
  const button = createElement('button', { textContent: 'Send' })
  button.onclick = async () => {
    try {
      const answer = await sendRequest(path, method, operation, input.value)
      const text = await answer.text()
      output.textContent = answer.status + ' ' + answer.statusText + '\\n' + text
    } catch (error) {
      output.textContent = String(error)
    }
  }
  const title = createElement('summary', {}, createElement('b', { textContent: method.toUpperCase() + ' ' + path }), ' ' + operation.summary)
  return createElement('details', {}, title, input, button, output)
}
fetch('/openapi.json').then((answer) => answer.json()).then(({ paths }) => {
  for (const [path, methods] of Object.entries(paths))
    for (const [method, operation] of Object.entries(methods))
      document.getElementById('operations').append(createPanel(path, method, operation))
})
</script>
</html>
`
