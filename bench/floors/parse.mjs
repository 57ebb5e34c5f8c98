import { base, count, pages, print } from './pages.mjs'

for await (const body of pages(base, count)) {
  const lines = JSON.parse(body.toString()).reviews.map(
    (data) => `${JSON.stringify({ type: 'RECORD', record: { stream: 'reviews', data, emitted_at: Date.now() } })}\n`,
  )
  await print(lines.join(''))
}
