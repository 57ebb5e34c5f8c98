import * as kit from 'feedback-connector/cdk'
import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as t from 'io-ts'

const Config = kit.orderFields({
  base_url: kit.describeField('Base URL', 'Address of the API', { examples: ['http://127.0.0.1:8081'] })(kit.textField),
  token: kit.describeField('Token', 'Sent with every request', { airbyte_secret: true, writeOnly: true })(
    kit.textField,
  ),
  page_size: kit.describeField('Page size', 'Items asked for at a time', { examples: [100] })(
    kit.fieldWithDefault(kit.integerField(1, 500), 100),
  ),
})

const Article = t.type({ id: t.number, title: t.string, author_id: t.number, updated_at: t.string })
const Author = t.type({ id: t.number, name: t.string, updated_at: t.string })
const Page = t.type({ items: t.readonlyArray(t.UnknownRecord), next: t.string })
const State = t.type({ after: t.string })

/** Fetches the page of a list that begins behind a cursor; '' is the beginning. */
type FetchPage = (list: string, after: string) => TaskEither<kit.Failure, t.TypeOf<typeof Page>>

const createFetchPage =
  ({ base_url, token, page_size }: t.TypeOf<typeof Config>, stop: AbortSignal): FetchPage =>
  (list, after) =>
  async () => {
    const url = `${base_url}/${list}?limit=${page_size}&after=${encodeURIComponent(after)}`
    const request = { headers: { authorization: `Bearer ${token}` }, signal: stop }
    const answer = await fetch(url, request).catch(() => undefined)
    if (answer === undefined) return E.left(kit.transientFailure(`${base_url} does not answer. Check base_url.`))
    if (answer.status === 401) return E.left(kit.configFailure('The API refuses the token. Set token to a valid one.'))
    const page: unknown = await answer.json().catch(() => undefined)
    return answer.ok && Page.is(page)
      ? E.right(page)
      : E.left(kit.transientFailure(`${list}: the answer (status ${answer.status}) is not a page. Run again later.`))
  }

/** Reads a list from the cursor in the state, with a checkpoint after each page, until a page is empty. */
const createListReader = (list: string): kit.Reader<FetchPage, object> => ({
  name: list,
  read: (fetchPage) =>
    async function* ([request]) {
      if (request === undefined) return
      const { stream, state, attributes, project } = request
      for (let after = O.isSome(state) && State.is(state.value) ? state.value.after : ''; ; ) {
        const page = await fetchPage(list, after)()
        if (E.isLeft(page)) return yield page
        const { items, next } = page.right
        yield E.right({ _tag: 'Rows', stream, rows: items.map(kit.pickAttributes(attributes)).flatMap(project) })
        yield E.right({ _tag: 'Checkpoint', stream, state: () => ({ after: next }) })
        if (items.length === 0) return
        after = next
      }
    },
})

const project = (item: object) => [kit.encodeRow(item)]
const shared = { primaryKey: ['id'], cursor: 'updated_at', project } as const
const articles = kit.defineStream({ ...shared, name: 'articles', codec: Article, reader: createListReader('articles') })
const authors = kit.defineStream({ ...shared, name: 'authors', codec: Author, reader: createListReader('authors') })

kit.runSource(
  {
    name: 'articles',
    subject: 'articles and their authors',
    version: '1.0.0',
    documentationUrl: 'https://example.com/articles',
    config: Config,
    streams: [articles, authors],
    connect: createFetchPage,
    check: (fetchPage) => fetchPage('articles', ''),
  },
  process,
)
