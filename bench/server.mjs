import { createServer } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import { review } from './review.mjs'

// Serves the review export from memory. The path says how much and how slowly:
// /PAGES/LATENCY_MS/api/reputation/v1/reviews. Distinct texts repeat after `distinct` records. Every record has a
// unique id of fixed width, patched in place.
const distinct = 20_000
const firstId = 4_000_000_000_000_000
const idAt = '{"id":'.length
const comma = Buffer.from(',')

const texts = Array.from({ length: distinct }, (_, index) =>
  Buffer.from(JSON.stringify(review(index, firstId + index))),
)
const starts = new Float64Array(distinct + 1)
texts.forEach((text, index) => {
  starts[index + 1] = starts[index] + text.length + comma.length
})
/** Honours only one filter, a time after the newest review: a service has no such reviews. */
const newest = Math.max(...texts.map((text) => Date.parse(JSON.parse(text).modifiedTime)))
const all = Buffer.concat(texts.flatMap((text) => [text, comma]))
texts.length = 0
const round = new Uint32Array(distinct)

const slice = (from, to) => all.subarray(starts[from], starts[to])

/** The bytes of the records [from, to), each with its comma. */
const records = (from, to) => {
  for (let record = from; record < to; record += 1) {
    const text = record % distinct
    const now = Math.floor(record / distinct)
    if (round[text] !== now) {
      round[text] = now
      all.latin1Write(String(firstId + record), starts[text] + idAt)
    }
  }
  const [a, b] = [from % distinct, to % distinct]
  const parts = a <= b && from + distinct > to ? [slice(a, b)] : [slice(a, distinct), slice(0, b)]
  return parts.filter(({ length }) => length > 0)
}

const page = (operation, pages, asked) => {
  const { offset = 0, limit = 1000 } = asked
  const isLater = Date.parse(asked.modifiedTimeFrom) > newest
  const total = operation === 'reviews' && !isLater ? pages * 1000 : 0
  const rows = records(Math.min(offset, total), Math.min(offset + limit, total))
  const last = rows.at(-1)
  const filter = {
    clientId: 'bench',
    sources: [1, 2, 3, 4],
    dateType: 'MODIFIED_TIME',
    additionalFields: [],
    ...asked,
    offset,
    limit,
  }
  return [
    Buffer.from('{"reviews":['),
    ...rows.slice(0, -1),
    ...(last === undefined ? [] : [last.subarray(0, -1)]),
    Buffer.from(`],"filter":${JSON.stringify(filter)}}`),
  ]
}

const body = async (request) => {
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  return JSON.parse(Buffer.concat(chunks).toString())
}

const server = createServer(async (request, response) => {
  const [, pages, latency, operation] =
    /^\/(\d+)\/(\d+)\/api\/reputation\/v1\/(reviews|deleted-reviews)$/.exec(request.url) ?? []
  if (operation === undefined) {
    response.writeHead(404).end()
    return
  }
  const chunks = page(operation, Number(pages), await body(request))
  if (latency > 0) await setTimeout(Number(latency))
  response.writeHead(200, {
    'content-type': 'application/json',
    'content-length': chunks.reduce((sum, { length }) => sum + length, 0),
  })
  response.cork()
  for (const chunk of chunks) response.write(chunk)
  response.end()
  response.uncork()
})

server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => {
  const recordBytes = Math.round(all.length / distinct)
  process.stdout.write(`${JSON.stringify({ url: `http://127.0.0.1:${server.address().port}`, recordBytes })}\n`)
})
process.stdin.resume().on('end', () => process.exit())
