import * as E from 'fp-ts/Either'
import {
  concernsEntity,
  countRows,
  type EntityAnswer,
  EntityError,
  type EntityRequest,
  type EntityResult,
  type EntityRows,
} from './answer'
import { type EntityReader, emptyPagesAtEnd, hasShortPages, judge, showLengths } from './reader'
import type { Entity, EntityKind } from './selection'
import { type EntityWindow, endOfRun, readEntity } from './window'

/** Entities of one kind that are read from the same time (milliseconds, a whole second). */
export type EntityGroup = {
  readonly kind: EntityKind
  readonly ids: ReadonlyArray<string>
  readonly from: number
  /** No earlier run has read them, or no later one will read this window again. */
  readonly isFirst: boolean
}

const split = (group: EntityGroup, size: number): ReadonlyArray<EntityGroup> =>
  Array.from({ length: Math.ceil(group.ids.length / size) }, (_, n) => ({
    ...group,
    ids: group.ids.slice(n * size, (n + 1) * size),
  }))

/** The groups of a run, in the order of the entities; `fromOf`: the start of an entity's window, milliseconds. */
export const groupEntities = (
  maxIdentifiers: number,
  entities: ReadonlyArray<Entity>,
  fromOf: (entity: Entity) => number,
  isFirst: (entity: Entity) => boolean,
): ReadonlyArray<EntityGroup> => {
  const groups = new Map<string, EntityGroup & { ids: string[] }>()
  for (const entity of entities) {
    const { kind, id } = entity
    const key = `${kind} ${fromOf(entity)} ${isFirst(entity)}`
    const group = groups.get(key)
    if (group === undefined) groups.set(key, { kind, ids: [id], from: fromOf(entity), isFirst: isFirst(entity) })
    else group.ids.push(id)
  }
  return [...groups.values()].flatMap((group) => split(group, maxIdentifiers))
}

/**
 * Reads the entities of a group: first those whose rows are complete in an answer about all of them, then the others
 * one by one. A group that the service refuses is halved, down to the entity that it refuses.
 */
export async function* readGroup(reader: EntityReader, group: EntityGroup): AsyncGenerator<EntityResult> {
  const { kind, ids, from } = group
  const { shown } = reader
  // A cursor may be later than the end of this run.
  if (from >= endOfRun(reader)) return
  if (ids.length > shown.maxIdentifiers)
    return yield* readInOrder(
      split(group, shown.maxIdentifiers).map((part) => () => readGroup(reader, part)),
      reader.concurrency,
    )
  const [id = '', ...more] = ids
  if (more.length === 0) return yield* readSingle(reader, { kind, id, from, isFirst: group.isFirst })
  try {
    const [request, answer] = await askGroup(reader, group)
    const whole = await findWhole(reader, group, request, answer)
    for (const one of whole) yield { kind, id: one.id, to: undefined, answer: E.right(one) }
    const wholeIds = new Set(whole.map((one) => one.id))
    const others = ids.filter((id) => !wholeIds.has(id))
    yield* readInOrder(
      others.map((id) => () => readSingle(reader, { kind, id, from, isFirst: group.isFirst, ...knownOf(id, answer) })),
      reader.concurrency,
    )
  } catch (error) {
    if (!(error instanceof EntityError)) throw error
    const { error: told } = error
    const half = Math.ceil(ids.length / 2)
    if (told._tag === 'Http' && told.status === 413) {
      shown.maxIdentifiers = Math.min(shown.maxIdentifiers, half)
      yield* readGroup(reader, group)
    } else if (told._tag === 'TooLarge' || concernsEntity(told))
      for (const part of split(group, half)) yield* readGroup(reader, part)
    else throw error
  }
}

const knownOf = (id: string, { entities, perPage }: EntityAnswer): Pick<EntityWindow, 'known' | 'isCut'> => {
  const known = entities.find((one) => one.id === id)
  return { known, isCut: known !== undefined && known.rows.length >= perPage }
}

/** Reads one entity. An error becomes its result, unless it concerns the service. */
async function* readSingle(reader: EntityReader, window: EntityWindow): AsyncGenerator<EntityResult> {
  try {
    yield* readEntity(reader, window)
  } catch (error) {
    if (!(error instanceof EntityError)) throw error
    const { error: told, entities } = error
    // No request failed, so its rows are what cannot be read.
    if (entities !== undefined && !concernsEntity(told) && told._tag !== 'TooLarge') throw error
    yield { kind: window.kind, id: window.id, to: undefined, answer: E.left(told) }
  }
}

const toRequest = (reader: EntityReader, { kind, ids, from }: EntityGroup): EntityRequest => ({
  kind,
  ids,
  from,
  to: endOfRun(reader),
  page: reader.operation.firstPage,
  byDays: !reader.shown.usesDates,
})

/** Requests the first page of a group. An empty one proves nothing and is requested twice. */
const askGroup = async (
  reader: EntityReader,
  group: EntityGroup,
): Promise<readonly [request: EntityRequest, answer: EntityAnswer]> => {
  for (let attempt = 1; ; attempt += 1) {
    const request = toRequest(reader, group)
    const { usesDates } = reader.shown
    const answer = await reader.ask(request)
    if (usesDates !== reader.shown.usesDates) continue
    const isDoubtful = group.isFirst && countRows(answer) === 0 && attempt === 1
    // The local clock may be far behind the service's.
    if (!isDoubtful && request.to >= endOfRun(reader)) return [request, answer]
  }
}

/** The entities whose rows are complete in an answer about a group. */
const findWhole = async (
  reader: EntityReader,
  group: EntityGroup,
  request: EntityRequest,
  answer: EntityAnswer,
): Promise<ReadonlyArray<EntityRows>> => {
  const { shown } = reader
  const { entities, perPage } = answer
  if (entities.some(({ id }) => !group.ids.includes(id))) {
    // The service uses ids of its own, so we can't tell which entity is which.
    shown.maxIdentifiers = 1
    return []
  }
  if (perPage === Number.POSITIVE_INFINITY) return entities
  const longestBefore = shown.longest
  showLengths(shown, answer)
  /** No answer has shown that these rows do not end at a limit, so the entity is read alone. */
  const isLongest = ({ rows, pages }: EntityRows): boolean =>
    pages === 1 && rows.length === shown.longest && rows.length > longestBefore
  const judged = entities.map((one) => ({ one, extent: isLongest(one) ? 'cut' : judge(shown, one, perPage) }))
  const count = countRows(answer)
  shown.longestGroup = Math.max(shown.longestGroup, count)
  /** As many rows as ever before, or as a page may have: a limit across all entities may have cut them off. */
  const isGroupFull = count > 0 && count <= perPage && (count === perPage || count === shown.longestGroup)
  const isWhole = ({ extent }: (typeof judged)[number]): boolean => extent === 'complete'
  if (!isGroupFull && judged.every(({ extent }) => extent !== 'unknown'))
    return judged.filter(isWhole).map(({ one }) => one)
  const behind = await askBehind(reader, request)
  const cut = entities.flatMap(({ id, rows }) => (behind?.has(id) ? [rows.length] : []))
  // A limit across all entities cuts some of them off at any point.
  const isPagedByEntity = count > perPage
  if (isPagedByEntity || cut.every((length) => length === shown.longest)) showLengths(shown, answer, Math.min(...cut))
  if (behind === undefined || (behind.size > 0 && !isPagedByEntity))
    return isGroupFull ? [] : judged.filter(isWhole).map(({ one }) => one)
  if (hasShortPages(shown) && behind.size > 0) return []
  const ended = judged.filter(({ one, extent }) => extent !== 'cut' && !behind.has(one.id)).map(({ one }) => one)
  // A row deleted earlier in the list may have moved another one to the first page.
  const mayHaveMoved =
    group.isFirst && (isGroupFull || ended.some(({ rows }) => rows.length > 0 && rows.length === shown.longest))
  return mayHaveMoved && !(await isRepeated(reader, request, answer)) ? [] : ended
}

/** The ids of the entities that have rows after the first page; undefined if the service refuses to answer. */
const askBehind = async (reader: EntityReader, request: EntityRequest): Promise<ReadonlySet<string> | undefined> => {
  for (let page = 1; page <= emptyPagesAtEnd(reader.shown); page += 1) {
    const next = await reader.ask({ ...request, page: request.page + page })
    if (next.isRefused) return undefined
    const ids = next.entities.flatMap(({ id, rows }) => (rows.length > 0 ? [id] : []))
    if (ids.length > 0) return new Set(ids)
  }
  return new Set()
}

/** A second request for the first page returned the same rows. */
const isRepeated = async (reader: EntityReader, request: EntityRequest, answer: EntityAnswer): Promise<boolean> => {
  const { key } = reader.operation
  const list = ({ entities }: EntityAnswer): string =>
    JSON.stringify(entities.map(({ id, rows }) => [id, ...rows.map((row) => String(row[key])).sort()]).sort())
  return list(await reader.ask(request)) === list(answer)
}

/**
 * The items of several generators, in order. Up to `count` of the next generators start at the same time, and each
 * waits with its first item.
 */
export async function* readInOrder<A>(
  starts: ReadonlyArray<() => AsyncGenerator<A>>,
  count: number,
): AsyncGenerator<A> {
  const begun: Array<{ readonly items: AsyncGenerator<A>; readonly first: Promise<IteratorResult<A>> }> = []
  let next = 0
  const begin = (): void => {
    for (; next < starts.length && begun.length < count; next += 1) {
      const items = starts[next]?.()
      if (items === undefined) continue
      const first = items.next()
      first.catch(() => undefined)
      begun.push({ items, first })
    }
  }
  try {
    for (begin(); begun.length > 0; begin()) {
      const current = begun[0]
      for (
        let item = await current?.first;
        item !== undefined && item.done !== true;
        item = await current?.items.next()
      )
        yield item.value
      begun.shift()
    }
  } finally {
    for (const { items } of begun) void items.return(undefined)
  }
}
