const pageHead = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Feedback Data Service</title>
<style>
  :root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif }
  body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
  summary { cursor: pointer; padding: .3rem 0 }
  textarea, input { width: 100%; box-sizing: border-box; font: 13px/1.4 ui-monospace, monospace }
  pre { overflow: auto; max-height: 30rem; border: 1px solid; padding: .5rem }
  pre { font-size: 13px; white-space: pre-wrap; overflow-wrap: anywhere }
  table { border-collapse: collapse; font-size: 13px; display: block; overflow: auto }
  th, td { text-align: left; vertical-align: top; padding: .15rem .75rem .15rem 0 }
  h3 { margin: 1rem 0 .25rem; font-size: 1rem }
</style>`

/** The page at the root, from which every other page is found. */
export const indexPage = `${pageHead}
<h1>Feedback Data Service: the sandbox</h1>
<ul>
<li><a href="/docs">Documentation</a>: every operation with its curl command and the meaning of each field,
  to try out here</li>
<li><a href="/openapi.json">openapi.json</a>: the same for programs</li>
</ul>
<p>For the operator, with the access token from the line that the sandbox printed:</p>
<label>Access token <input id="token" autocomplete="off"></label>
<ul>
<li><a class="operator" href="/__sandbox/truth">Truth</a>: what the service holds now</li>
<li><a class="operator" href="/__sandbox/log">Log</a> of the requests, and their
  <a class="operator" href="/__sandbox/stats">numbers</a></li>
</ul>
<script>
document.getElementById('token').oninput = ({ target }) => {
  const search = '?' + new URLSearchParams({ access_token: target.value })
  for (const link of document.querySelectorAll('a.operator')) link.search = search
}
</script>
</html>
`

/**
 * An HTML page that lists the operations of `/openapi.json` to try them in a browser; it loads nothing from other
 * hosts.
 */
export const docsPage = `${pageHead}
<h1>Feedback Data Service</h1>
<p>The sandbox, described by <a href="/openapi.json">openapi.json</a>. <a href="/">All its pages</a>.</p>
<label>Access token, from the line that the sandbox printed <input id="token" autocomplete="off"></label>
<div id="operations"></div>
<script>
const from = '1970-01-01T00:00:00.000Z'
const examples = {
  retrieveReviews: { locationId: '1001', perPage: 5 },
  retrieveComments: { locationId: '1001', perPage: '5' },
  retrieveCommentsByForm: { locationId: ['1001', '1002'], perPage: '5' },
  createVisitRecords: [{
    name: 'Ada Example', email: 'ada@example.org', locationCode: 'LOC-1001', npi: '1234567893', visitRecordId: 'V-1',
  }],
  syncLocations: [{ code: 'LOC-9001', codeType: 'INTERNAL', active: true, name: 'New Clinic' }],
  exportReviews: { modifiedTimeFrom: from, limit: 5, additionalFields: ['brand'] },
  exportDeletedReviews: { modifiedTimeFrom: from, limit: 5 },
  issueToken: { appId: '', appSecret: '' },
}

const createElement = (name, properties, ...children) => {
  const element = Object.assign(document.createElement(name), properties)
  element.append(...children)
  return element
}

const pairs = (value) =>
  new URLSearchParams(Object.entries(value).flatMap(([key, field]) => [field].flat().map((item) => [key, item])))

const isForm = (operation) => operation.requestBody?.content['application/x-www-form-urlencoded'] !== undefined
const buildRequest = (path, method, operation, text) => {
  const headers = {}
  for (const scheme of operation.security) headers[Object.keys(scheme)[0]] = document.getElementById('token').value
  if (method === 'get') return { url: path + '?' + pairs(JSON.parse(text)), method: 'GET', headers }
  headers['Content-Type'] = isForm(operation) ? 'application/x-www-form-urlencoded' : 'application/json'
  const body = isForm(operation) ? String(pairs(JSON.parse(text))) : text
  return { url: path, method: method.toUpperCase(), headers, body }
}

const quote = (text) => "'" + text.replaceAll("'", "'\\\\''") + "'"
const curlCommand = ({ url, method, headers, body }) =>
  ['curl -X ' + method + ' ' + quote(location.origin + url)]
    .concat(Object.entries(headers).map(([name, value]) => '-H ' + quote(name + ': ' + (value || 'YOUR_TOKEN'))))
    .concat(body === undefined ? [] : ['--data ' + quote(body)])
    .join(' \\\\\\n  ')
// Works on the text: parsing would round ids of more than 53 bits.
const indentJson = (text) => {
  let depth = 0
  const line = () => '\\n' + '  '.repeat(depth)
  const tokens = text.match(/"(?:[^"\\\\]|\\\\.)*"|[{}\\[\\],:]|[^\\s{}\\[\\],:"]+/g) ?? []
  return tokens.map((token, i) => {
    if ('{['.includes(token)) return '}]'.includes(tokens[i + 1]) ? token : (depth++, token + line())
    if ('}]'.includes(token)) return '{['.includes(tokens[i - 1]) ? token : (depth--, line() + token)
    return token === ',' ? token + line() : token === ':' ? ': ' : token
  }).join('')
}

const describeField = (path, schema) =>
  [path, [schema.type ?? 'any'].flat().filter((type) => type !== 'null').join(' or '), schema.description ?? '']
const listFields = (schema, path = '') => {
  const saysNothing = schema.description === undefined && (schema.properties || schema.items) && path.endsWith('[]')
  const here = path === '' || saysNothing ? [] : [describeField(path, schema)]
  const inner = Object.entries(schema.properties ?? {}).flatMap(([name, field]) =>
    listFields(field, path === '' ? name : path + '.' + name))
  return here.concat(inner, schema.items ? listFields(schema.items, path + '[]') : [])
}

const fieldTable = (title, fields) => {
  if (fields.length === 0) return ''
  const rows = [['field', 'type', 'meaning'], ...fields].map((cells, i) =>
    createElement('tr', {}, ...cells.map((textContent) => createElement(i === 0 ? 'th' : 'td', { textContent }))))
  return createElement('div', {}, createElement('h3', { textContent: title }), createElement('table', {}, ...rows))
}

const requestFields = (operation) =>
  (operation.parameters ?? []).map(({ name, schema }) => describeField(name, schema))
    .concat(Object.values(operation.requestBody?.content ?? {}).flatMap(({ schema }) => listFields(schema)))

const createPanel = (path, method, operation) => {
  const example = JSON.stringify(examples[operation.operationId] ?? {}, null, 2)
  const input = createElement('textarea', { rows: 6, value: example })
  const curl = createElement('pre', { className: 'curl' })
  const output = createElement('pre', { className: 'answer', textContent: '' })
  const button = createElement('button', { textContent: 'Send' })
  const showCurl = () => {
    try {
      curl.textContent = curlCommand(buildRequest(path, method, operation, input.value))
    } catch (error) {
      curl.textContent = String(error)
    }
  }
  input.oninput = showCurl
  document.getElementById('token').addEventListener('input', showCurl)
  showCurl()
  button.onclick = async () => {
    try {
      const { url, ...request } = buildRequest(path, method, operation, input.value)
      const answer = await fetch(url, request)
      output.textContent = answer.status + ' ' + answer.statusText + '\\n' + indentJson(await answer.text())
    } catch (error) {
      output.textContent = String(error)
    }
  }
  const name = createElement('b', { textContent: method.toUpperCase() + ' ' + path })
  const title = createElement('summary', {}, name, ' ' + operation.summary)
  const answerFields = listFields(operation.responses['200'].content['application/json'].schema)
  const tables = [fieldTable('Request', requestFields(operation)), fieldTable('Answer', answerFields)]
  return createElement('details', {}, title, input, curl, button, output, ...tables)
}
fetch('/openapi.json').then((answer) => answer.json()).then(({ paths }) => {
  for (const [path, methods] of Object.entries(paths))
    for (const [method, operation] of Object.entries(methods))
      document.getElementById('operations').append(createPanel(path, method, operation))
})
</script>
</html>
`
