import * as E from 'fp-ts/Either'
import * as t from 'io-ts'
import type { LookupRoutes } from '../../api'
import { type Churn, noChurn } from '../data/churn'
import type { SandboxService } from '../operations/service'
import { readBody } from './handlers'
import { describeService } from './openapi'
import { jsonReply, refusalReply } from './reply'
import type { RequestLog } from './request-log'
import type { SandboxPage } from './server'

/** A page that lists what `/openapi.json` describes, to try it in a browser; it asks nothing of any other host. */
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
const make = (name, properties, ...children) => {
  const element = Object.assign(document.createElement(name), properties)
  element.append(...children)
  return element
}
const pairs = (value) =>
  new URLSearchParams(Object.entries(value).flatMap(([key, field]) => [field].flat().map((item) => [key, item])))
const ask = async (path, method, operation, text) => {
  const value = JSON.parse(text)
  const form = operation.requestBody?.content['application/x-www-form-urlencoded'] !== undefined
  const headers = {}
  for (const scheme of operation.security) headers[Object.keys(scheme)[0]] = document.getElementById('token').value
  if (method === 'get') return fetch(path + '?' + pairs(value), { headers })
  if (form) return fetch(path, { method, headers, body: pairs(value) })
  headers['Content-Type'] = 'application/json'
  return fetch(path, { method, headers, body: text })
}
const show = (path, method, operation) => {
  const input = make('textarea', { rows: 6, value: JSON.stringify(examples[operation.operationId] ?? {}, null, 2) })
  const output = make('pre', { textContent: '' })
  const button = make('button', { textContent: 'Send' })
  button.onclick = async () => {
    try {
      const answer = await ask(path, method, operation, input.value)
      const text = await answer.text()
      output.textContent = answer.status + ' ' + answer.statusText + '\\n' + text
    } catch (error) {
      output.textContent = String(error)
    }
  }
  const title = make('summary', {}, make('b', { textContent: method.toUpperCase() + ' ' + path }), ' ' + operation.summary)
  return make('details', {}, title, input, button, output)
}
fetch('/openapi.json').then((answer) => answer.json()).then(({ paths }) => {
  for (const [path, methods] of Object.entries(paths))
    for (const [method, operation] of Object.entries(methods))
      document.getElementById('operations').append(show(path, method, operation))
})
</script>
</html>
`

const ChurnCounts = t.exact(t.partial({ change: t.number, delete: t.number, add: t.number, restore: t.number }))
const isCount = (count: number | undefined): boolean =>
  count === undefined || (Number.isInteger(count) && count >= 0 && count <= 1_000_000)

const decodeChurn = (body: Buffer | undefined): Partial<Churn> | undefined => {
  const json = E.tryCatch(
    () => JSON.parse(body?.toString('utf8') ?? '') as unknown,
    () => undefined,
  )
  const step = E.isLeft(json) ? json : ChurnCounts.decode(json.right)
  return E.isRight(step) && Object.values(step.right).every(isCount) ? step.right : undefined
}

/** What is served beside the service: its description, and what no client may see: the log, the counts, the truth, a way to let time pass. */
export const createSandboxPages = (
  service: SandboxService,
  log: RequestLog,
  lookups: LookupRoutes,
): ReadonlyArray<SandboxPage> => [
  { method: 'GET', path: '/openapi.json', answer: async () => jsonReply(200, describeService(lookups)) },
  {
    method: 'GET',
    path: '/docs',
    answer: async () => ({
      status: 200,
      headers: { 'Content-Type': 'text/html;charset=UTF-8' },
      body: Buffer.from(docsPage),
    }),
  },
  { method: 'GET', path: '/__sandbox/log', answer: async () => jsonReply(200, log.entries()) },
  { method: 'GET', path: '/__sandbox/stats', answer: async () => jsonReply(200, log.stats()) },
  {
    method: 'GET',
    path: '/__sandbox/truth',
    answer: async () => jsonReply(200, await service.truthSummary()),
  },
  {
    method: 'POST',
    path: '/__sandbox/churn',
    answer: async (request) => {
      const step = decodeChurn(await readBody(request))
      if (step === undefined) return refusalReply(400, 'expected counts such as {"change": 3, "delete": 1, "add": 1}')
      await service.churn({ ...noChurn, ...step })
      return jsonReply(200, { done: step })
    },
  },
]
