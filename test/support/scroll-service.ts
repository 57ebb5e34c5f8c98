import * as TE from 'fp-ts/TaskEither'
import type { Api } from '../../connector/api/routes'
import { toInstant, toMillis } from '../../connector/cdk/scalar'
import { parseExact, printExact } from './destination'
import { sendJson, startServer } from './listen'
import { random } from './random'

/** How a service of operations 1 to 3 pages, where its specification is silent. */
export type ScrollTraits = {
  /** fromDate and toDate decide; otherwise the days do. */
  readonly windows: 'used' | 'ignored'
  /** Empty: each page after the first is empty. */
  readonly page: 'used' | 'ignored' | 'empty'
  /**
   * The scroll keys of operation 1. Row: of the last row of a page; offset: of the next offset; endless: the same,
   * after the last page too; constant: one key that leads on each time; repeated: the last page leads to itself;
   * overlap: a page begins with the last row of the one before; blank: empty texts. Broken ones: cycle leads back to
   * the second page after the third, stuck always to the first, time to the rows before the last one's time, without
   * others of that time.
   */
  readonly key:
    | 'none'
    | 'row'
    | 'offset'
    | 'endless'
    | 'constant'
    | 'repeated'
    | 'overlap'
    | 'blank'
    | 'cycle'
    | 'stuck'
    | 'time'
  /** The window in the echo: the requested one even if it is not used, that of the days, or none. */
  readonly echo: 'requested' | 'days' | 'none'
  readonly echoedSize: 'applied' | 'requested' | 'none'
  readonly maxPageSize: number
  /** The most days that it goes back; undefined: it ignores days. */
  readonly maxDays: number | undefined
  readonly order: 'newest' | 'oldest' | 'scattered'
  /** Rows that come, come late, go, or are answered after each answer, on average. */
  readonly changes: number
}

export const publishedTraits: ScrollTraits = {
  windows: 'ignored',
  page: 'ignored',
  key: 'row',
  echo: 'days',
  echoedSize: 'applied',
  maxPageSize: 100,
  maxDays: 36_500,
  order: 'newest',
  changes: 0,
}

export const specifiedTraits: ScrollTraits = {
  ...publishedTraits,
  windows: 'used',
  page: 'used',
  echo: 'requested',
}

type Row = { readonly id: bigint; readonly mention: number; response: string | null }
type Asked = Readonly<Record<string, unknown>>

const day = 86_400_000
const second = 1000

const asText = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

/** A service with rows by entity, as `person 1`. Its clock moves with each answer. */
export const createScrollService = (initial: ScrollTraits, seed: number, start: number) => {
  let traits = initial
  let clock = start
  let serial = 9_007_199_254_740_993n
  const chance = random(seed)
  const pick = (sides: number): number => Math.floor(chance() * sides)
  const rowsByEntity = new Map<string, Row[]>()
  const requests: Asked[] = []
  /** Keys with the entity and the filters of the request that they were given for: they hold for no others. */
  const givenKeys = new Set<string>()
  /** Offsets that a constant key stands for. */
  const positions = new Map<string, number>()

  const addRow = (entity: string, mention: number): void => {
    serial += 2n
    rowsByEntity.set(entity, [...(rowsByEntity.get(entity) ?? []), { id: serial, mention, response: null }])
  }

  const change = (): void => {
    const entities = [...rowsByEntity.keys()]
    const entity = entities[pick(entities.length)] ?? ''
    const rows = rowsByEntity.get(entity) ?? []
    const recent = rows.filter(({ mention }) => mention > clock - 20 * day)
    const chosen = recent[pick(recent.length)]
    const kind = chance()
    if (kind < 0.3) addRow(entity, clock)
    else if (kind < 0.5) addRow(entity, clock - pick(20 * day))
    else if (kind < 0.7) rows.splice(pick(rows.length), 1)
    else if (chosen !== undefined) chosen.response = `answered at ${clock}`
  }

  const sortKey = ({ id, mention }: Row): number =>
    ({ newest: -mention, oldest: mention, scattered: Number(id % 7919n) })[traits.order]
  const sortRows = (rows: ReadonlyArray<Row>): ReadonlyArray<Row> =>
    [...rows].sort((a, b) => sortKey(a) - sortKey(b) || Number(a.id - b.id))

  /** The page that is asked for, and the key of the next one. */
  const selectPage = (rows: ReadonlyArray<Row>, asked: Asked, entity: string, firstPage: number, size: number) => {
    const { key } = traits
    const scrollKey = asText(asked.scrollKey)
    const pageNumber = Number(asked.page ?? firstPage) - firstPage
    const isEmpty = scrollKey === undefined && traits.page === 'empty' && pageNumber > 0
    const pageOffset = traits.page === 'used' ? pageNumber * size : 0
    const [, sort, lastId] = /^row (\S+) (\d+)$/.exec(scrollKey ?? '') ?? []
    const rowIndex = rows.findIndex(
      (row) => sortKey(row) > Number(sort) || (sortKey(row) === Number(sort) && row.id > BigInt(lastId ?? 0)),
    )
    const keyOffset = (): number => {
      if (key === 'constant') return positions.get(entity) ?? 0
      if (key === 'row') return rowIndex < 0 ? rows.length : rowIndex
      return Number(scrollKey?.split(' ')[1])
    }
    const offset = isEmpty ? rows.length : scrollKey === undefined ? pageOffset : keyOffset()
    const page = rows.slice(offset, offset + size)
    const next = offset + size
    positions.set(entity, next)
    const last = page.at(-1)
    const isLast = next >= rows.length
    const createKey = (): string | null => {
      if (key === 'none') return null
      if (key === 'blank') return ''
      if (key === 'constant') return 'constant'
      if (key === 'stuck') return 'offset 0'
      if (key === 'endless') return `offset ${next}`
      if (key === 'repeated') return `offset ${isLast ? offset : next}`
      if (key === 'cycle') return isLast ? null : `offset ${next >= 3 * size ? size : next}`
      if (isLast || last === undefined) return null
      if (key === 'overlap') return `offset ${next - (page.length > 1 ? 1 : 0)}`
      if (key === 'time') return `offset ${rows.findLastIndex(({ mention }) => mention === last.mention) + 1}`
      return key === 'row' ? `row ${sortKey(last)} ${last.id}` : `offset ${next}`
    }
    return { page, key: createKey() }
  }

  /** The answer to a request for these entities; `list` names their rows, `rowId` the rows' ids. */
  const answer = (asked: Asked, kind: string, ids: ReadonlyArray<string>, list: 'reviews' | 'comments') => {
    requests.push(asked)
    const { page: _page, scrollKey: askedKey, ...others } = asked
    const filters = JSON.stringify(others)
    if (askedKey !== undefined && !givenKeys.has(`${askedKey} ${filters}`))
      throw new Error(`the key ${askedKey} was given for other filters than ${filters}`)
    if (requests.length > 30_000) throw new Error('a reading that does not end')
    clock += 50 + pick(400)
    const [fromDate, toDate] = [asText(asked.fromDate), asText(asked.toDate)]
    const days = Math.min(Number(asked.days ?? 365), traits.maxDays ?? Number.POSITIVE_INFINITY)
    const ofDays = { from: traits.maxDays === undefined ? Number.NEGATIVE_INFINITY : clock - days * day, to: clock }
    const ofDates =
      fromDate === undefined || toDate === undefined ? undefined : { from: toMillis(fromDate), to: toMillis(toDate) }
    const { from, to } = traits.windows === 'used' ? (ofDates ?? ofDays) : ofDays
    const size = Math.min(Number(asked.perPage ?? 20), traits.maxPageSize)
    const firstPage = list === 'reviews' ? 0 : 1
    let scrollKey: string | null = null
    const entities = ids.flatMap((id) => {
      const rows = rowsByEntity.get(`${kind} ${id}`)
      if (rows === undefined) return []
      const inWindow = sortRows(rows.filter(({ mention }) => mention >= from && mention <= to))
      const selected = selectPage(inWindow, asked, `${kind} ${id}`, firstPage, size)
      if (ids.length === 1 && list === 'reviews') scrollKey = selected.key
      const toRow = ({ id: rowId, mention, response }: Row) => ({
        [list === 'reviews' ? 'documentId' : 'id']: rowId,
        mentionTime: toInstant(mention),
        source: `${kind} ${id} ${rowId}`,
        response: response === null ? null : { responseText: response },
      })
      return [{ id, name: `The ${kind} ${id}`, [list]: selected.page.map(toRow) }]
    })
    const echoed = traits.echo === 'requested' ? ofDates : traits.echo === 'days' ? ofDays : undefined
    const filter = {
      perPage: { applied: size, requested: Number(asked.perPage ?? 20), none: null }[traits.echoedSize],
      scrollKey,
      ...(traits.echo === 'none' ? {} : { days: Number.isFinite(days) ? days : null }),
      ...(echoed === undefined || !Number.isFinite(echoed.from)
        ? {}
        : { period: { from: toInstant(Math.floor(echoed.from / second) * second), to: toInstant(echoed.to) } }),
    }
    if (scrollKey !== null) givenKeys.add(`${scrollKey} ${filters}`)
    for (let n = traits.changes; n > chance(); n -= 1) change()
    return { status: { code: 200, message: 'SUCCESS' }, data: { client: 'small', entities, filter }, servedAt: clock }
  }

  const idsOf = (asked: Asked): readonly [string, ReadonlyArray<string>] => {
    const kind = ['person', 'location', 'entity'].find((one) => asked[`${one}Id`] !== undefined) ?? ''
    const ids = asked[`${kind}Id`]
    return [kind, Array.isArray(ids) ? ids.map(String) : [String(ids)]]
  }

  const api = {
    retrieveReviews: (asked: Asked) => async () => TE.right(answer(asked, ...idsOf(asked), 'reviews'))(),
    retrieveComments: (asked: Asked) => async () => TE.right(answer(asked, ...idsOf(asked), 'comments'))(),
    retrieveCommentsByForm: (asked: Asked) => async () => TE.right(answer(asked, ...idsOf(asked), 'comments'))(),
  } as unknown as Pick<Api, 'retrieveReviews' | 'retrieveComments' | 'retrieveCommentsByForm'>

  return {
    api,
    requests,
    addRow,
    addEntity: (entity: string): void => {
      rowsByEntity.set(entity, rowsByEntity.get(entity) ?? [])
    },
    setTraits: (changed: Partial<ScrollTraits>): void => {
      traits = { ...traits, ...changed }
    },
    now: (): number => clock,
    advanceClock: (millis: number): void => {
      clock += millis
    },
    pick,
    /** Answers the newest row of an entity. */
    respond: (entity: string): void => {
      const newest = sortRows(rowsByEntity.get(entity) ?? []).reduce<Row | undefined>(
        (best, row) => (best === undefined || row.mention > best.mention ? row : best),
        undefined,
      )
      if (newest !== undefined) newest.response = `answered at ${clock}`
    },
    /** The rows from a time on, as `entity id response`. */
    truth: (from: number): ReadonlyArray<string> =>
      [...rowsByEntity]
        .flatMap(([entity, rows]) =>
          rows.flatMap(({ id, mention, response }) => (mention < from ? [] : [`${entity} ${id} ${response}`])),
        )
        .sort(),
    /** Serves operations 1 to 3 over HTTP. */
    listen: (onEnd?: (close: () => void) => void) =>
      startServer(({ method, url, body }, response) => {
        const isReviews = url.endsWith('/v2/reviews')
        const pairs = new URLSearchParams(method === 'GET' ? new URL(url, 'http://small').search : body)
        const asked = isReviews
          ? (parseExact(body) as Asked)
          : Object.fromEntries(
              [...new Set(pairs.keys())].map((name) => {
                const values = pairs.getAll(name)
                return [name, values.length === 1 ? values[0] : values]
              }),
            )
        const { servedAt, ...answered } = answer(asked, ...idsOf(asked), isReviews ? 'reviews' : 'comments')
        const date = { Date: new Date(Math.floor(servedAt / second) * second).toUTCString() }
        sendJson(response, 200, printExact(answered), date)
      }, onEnd),
  }
}
export type ScrollService = ReturnType<typeof createScrollService>
