import { sendJson, startServer } from './listen'

/** What a service has: the texts of its reviews, and its deletions. */
export type ServiceContent = {
  readonly reviews: ReadonlyArray<string>
  readonly deletions: ReadonlyArray<{ readonly id: string; readonly modifiedTime: string }>
}

type Row = { readonly text: string; readonly modifiedTime: string }
const toRow = (text: string): Row => ({ text, modifiedTime: JSON.parse(text).modifiedTime })

/** Both exports in plain node:http, with the texts of reviews and the deletions that a test gives them. */
export const startReviewService = async (onEnd: (close: () => void) => void) => {
  let content: ServiceContent = { reviews: [], deletions: [] }
  const rowsOf = (url: string): ReadonlyArray<Row> =>
    (url.endsWith('/deleted-reviews')
      ? content.deletions.map(({ id, modifiedTime }) => `{"id":${id},"modifiedTime":"${modifiedTime}"}`)
      : content.reviews
    ).map(toRow)
  const { url } = await startServer(({ url: path, body }, response) => {
    const { modifiedTimeFrom, offset = 0, limit = 1000 } = JSON.parse(body)
    const rows = rowsOf(path)
      .filter(({ modifiedTime }) => modifiedTime > modifiedTimeFrom)
      .sort((a, b) => (a.modifiedTime < b.modifiedTime ? -1 : 1))
      .slice(offset, offset + limit)
    const filter = JSON.stringify({ modifiedTimeFrom, offset, limit })
    sendJson(response, 200, `{"reviews":[${rows.map(({ text }) => text).join(',')}],"filter":${filter}}`)
  }, onEnd)
  return {
    url,
    serve: (next: ServiceContent): void => {
      content = next
    },
  }
}
