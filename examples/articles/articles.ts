import * as kit from 'feedback-connector/cdk'
import { createJsonClient, type JsonClient } from 'feedback-connector/http'
import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
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

const Article = t.type({ id: kit.Int64, title: t.string, author_id: kit.Int64, updated_at: kit.Instant })
const Author = t.type({ id: kit.Int64, name: t.string, updated_at: kit.Instant })
const State = t.type({ after: t.string })

/** What the readers read from. */
type Api = { readonly client: JsonClient; readonly pageSize: number }

const connect = (
  { base_url, token, page_size }: t.TypeOf<typeof Config>,
  stop: AbortSignal,
  proxyVariables: Readonly<Record<string, string | undefined>>,
): Api => ({
  client: createJsonClient({ base_url, headers: { Authorization: `Bearer ${token}` }, stop, proxyVariables }),
  pageSize: page_size,
})

/** Reads a list from the cursor in the state, with a checkpoint after each page, until a page is empty. */
const createListReader = (list: string, item: t.Mixed): kit.Reader<Api, object> => {
  const Page = t.type({ items: t.readonlyArray(item), next: t.string })
  return {
    name: list,
    read: ({ client, pageSize }) =>
      async function* ([request]) {
        if (request === undefined) return
        const { stream, state, attributes, project } = request
        for (let after = O.isSome(state) && State.is(state.value) ? state.value.after : ''; ; ) {
          const page = await client.get(list, { limit: pageSize, after }, Page)()
          if (E.isLeft(page)) return yield page
          const { items, next } = page.right
          yield E.right({ _tag: 'Rows', stream, rows: items.map(kit.pickAttributes(attributes)).flatMap(project) })
          yield E.right({ _tag: 'Checkpoint', stream, state: () => ({ after: next }) })
          if (items.length === 0) return
          after = next
        }
      },
  }
}

const project = (item: object) => [kit.encodeRow(item)]
const shared = { primaryKey: ['id'], cursor: 'updated_at', project } as const
const articles = { ...shared, name: 'articles', codec: Article, reader: createListReader('articles', Article) } as const
const authors = { ...shared, name: 'authors', codec: Author, reader: createListReader('authors', Author) } as const

kit.runSource(
  {
    name: 'articles',
    subject: 'articles and their authors',
    version: '1.0.0',
    documentationUrl: 'https://example.com/articles',
    config: Config,
    streams: [kit.defineStream(articles), kit.defineStream(authors)],
    connect,
    check: ({ client }) => client.get('articles', { limit: 1 }, t.unknown),
  },
  process,
)
