import { base, count, pages, print } from './pages.mjs'

const [quote, backslash, open, close] = Buffer.from('"\\{}')
const after = Buffer.from('}}\n')

/** The slices of a page's records: the objects at depth two, found by counting braces outside strings. */
function* slices(body) {
  let depth = 0
  let start = 0
  for (let at = 0; at < body.length; at += 1) {
    const byte = body[at]
    if (byte === quote) {
      for (at += 1; body[at] !== quote; at += 1) if (body[at] === backslash) at += 1
    } else if (byte === open) {
      depth += 1
      if (depth === 2) start = at
    } else if (byte === close) {
      if (depth === 2) yield body.subarray(start, at + 1)
      depth -= 1
    }
  }
}

for await (const body of pages(base, count)) {
  const before = Buffer.from(`{"type":"RECORD","record":{"stream":"reviews","emitted_at":${Date.now()},"data":`)
  const records = [...slices(body)].slice(0, -1)
  await print(Buffer.concat(records.flatMap((record) => [before, record, after])))
}
