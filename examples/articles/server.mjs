// A small JSON API in the style of public ones, to try the example against: node examples/articles/server.mjs [PORT]
//
// GET /articles?limit=100&after=CURSOR { "items": [{ "id", "title", "author_id", "updated_at" }], "next": "CURSOR" }
// GET /authors?limit=100&after=CURSOR { "items": [{ "id", "name", "updated_at" }], "next": "CURSOR" } PUT /articles
// adds or replaces the article in the body
//
// Items come in the order of their change. `next` is the cursor behind the page, also behind the last one; a page
// without items is the end. Every request needs the header `Authorization: Bearer secret`.
import { createServer } from 'node:http'

const day = 86_400_000
const start = Date.UTC(2026, 0, 1)
const makeItems = (count, make) =>
  Array.from({ length: count }, (_, n) => ({
    id: n + 1,
    ...make(n),
    updated_at: new Date(start + n * day).toISOString(),
  }))

export const startServer = (port = 0) => {
  const lists = {
    authors: makeItems(7, (n) => ({ name: `Author ${n + 1}` })),
    articles: makeItems(230, (n) => ({ title: `Article ${n + 1}`, author_id: (n % 7) + 1 })),
  }
  let changes = Math.max(...Object.values(lists).map((items) => items.length))
  const log = { articles: [...lists.articles.keys()], authors: [...lists.authors.keys()] }

  const listPage = (name, limit, after) => {
    const from = after === '' ? 0 : Number(after)
    const items = log[name].slice(from, from + limit).map((index) => lists[name][index])
    return { items, next: String(from + items.length) }
  }
  const putArticle = (article) => {
    changes += 1
    const item = { ...article, updated_at: new Date(start + changes * day).toISOString() }
    const found = lists.articles.findIndex(({ id }) => id === item.id)
    const index = found < 0 ? lists.articles.length : found
    lists.articles[index] = item
    log.articles.push(index)
  }

  const server = createServer(async (request, response) => {
    const url = new URL(request.url, 'http://localhost')
    const name = url.pathname.slice(1)
    const answer = (status, value) => response.writeHead(status).end(JSON.stringify(value))
    if (request.headers.authorization !== 'Bearer secret') return answer(401, { error: 'no valid token' })
    if (!Object.hasOwn(lists, name)) return answer(404, { error: 'no such list' })
    if (request.method === 'PUT') {
      const chunks = []
      for await (const chunk of request) chunks.push(chunk)
      putArticle(JSON.parse(Buffer.concat(chunks).toString()))
      return answer(200, {})
    }
    return answer(
      200,
      listPage(name, Number(url.searchParams.get('limit') ?? 100), url.searchParams.get('after') ?? ''),
    )
  })
  return new Promise((resolve) =>
    server.listen(port, '127.0.0.1', () =>
      resolve({ url: `http://127.0.0.1:${server.address().port}`, putArticle, close: () => server.close() }),
    ),
  )
}

if (process.argv[1] === import.meta.filename) {
  const { url } = await startServer(Number(process.argv[2] ?? 8081))
  console.log(JSON.stringify({ base_url: url, token: 'secret' }))
}
