import { base, count, pages, print } from './pages.mjs'

const [quote, backslash, open, close] = Buffer.from('"\\{}')
const after = Buffer.from('}}\n')

/** Where a page's records begin and end: the objects at depth two, found by counting braces outside strings. */
const bounds = (body) => {
  const found = []
  let depth = 0
  let start = 0
  for (let at = 0; at < body.length; at += 1) {
    const byte = body[at]
    if (byte === quote) {
      at += 1
      while (body[at] !== quote) at += body[at] === backslash ? 2 : 1
    } else if (byte === open) {
      depth += 1
      if (depth === 2) start = at
    } else if (byte === close) {
      if (depth === 2) found.push([start, at + 1])
      depth -= 1
    }
  }
  return found.slice(0, -1)
}

for await (const body of pages(base, count)) {
  const before = Buffer.from(`{"type":"RECORD","record":{"stream":"reviews","emitted_at":${Date.now()},"data":`)
  const records = bounds(body)
  const lines = Buffer.allocUnsafe(body.length + records.length * (before.length + after.length))
  let end = 0
  for (const [from, to] of records) {
    end += before.copy(lines, end)
    end += body.copy(lines, end, from, to)
    end += after.copy(lines, end)
  }
  await print(lines.subarray(0, end))
}
