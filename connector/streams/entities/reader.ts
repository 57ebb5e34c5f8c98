import * as E from 'fp-ts/Either'
import { chooseCutoff, type RunNote } from '../../reading'
import {
  type EntityAnswer,
  EntityError,
  type EntityOperation,
  type EntityRequest,
  type EntityRows,
  type FetchEntities,
  incomplete,
  isOutside,
} from './answer'
import { type Entity, type EntityKind, entityKey } from './selection'

/** What the answers of a run have shown so far; changed in place. */
export type Shown = {
  /** False once rows from outside the requested dates came twice. Entities are then read page by page. */
  usesDates: boolean
  /** The longest list of an entity in an answer, and in an answer about several. */
  longest: number
  longestGroup: number
  /** The shortest list of an entity in an answer that others followed. */
  cut: number
  /** An answer had a scroll key, so one without a key is the last. */
  givesKeys: boolean
  /** The most identifiers in a request. */
  maxIdentifiers: number
}

/** One run over the entities of an operation. */
export type EntityReader = {
  readonly operation: EntityOperation
  readonly shown: Shown
  readonly now: () => number
  readonly concurrency: number
  /** The time up to which the run reads, milliseconds; undefined until the first answer. */
  readonly cutoff: () => number | undefined
  /**
   * Repeats a request until the answer is about the requested entities. Throws an EntityError. An answer that shows
   * that dates are ignored is not limited to the window.
   */
  readonly ask: (request: EntityRequest) => Promise<EntityAnswer>
  readonly takeNotes: () => ReadonlyArray<RunNote>
}

export type ReaderEnv = {
  readonly operation: EntityOperation
  readonly fetch: FetchEntities
  readonly now: () => number
  /** The most requests in flight. */
  readonly concurrency: number
}

const day = 86_400_000
const maxAttempts = 3

/** What a reader knows. `cutoff` and `coveredDays` change in place. */
type Known = {
  readonly env: ReaderEnv
  readonly shown: Shown
  /** The keys of all entities of the run. */
  readonly keys: ReadonlySet<string>
  readonly ids: ReadonlySet<string>
  readonly notes: RunNote[]
  cutoff: number | undefined
  /** How many days the service goes back at most. */
  coveredDays: number
}

/**
 * Detects answers about another entity. A roll-up may list its members, and any entity may be listed under an id of the
 * service's own.
 */
const isOfOther = (
  { keys, ids }: Known,
  kind: EntityKind,
  id: string,
  { entities: [first, ...others] }: EntityAnswer,
): boolean =>
  first !== undefined &&
  others.length === 0 &&
  first.id !== id &&
  (kind === 'entity' ? keys.has(entityKey({ kind, id: first.id })) : ids.has(first.id))

const fetchOnce = async (known: Known, request: EntityRequest): Promise<EntityAnswer> => {
  const { env, notes, shown } = known
  const answer = await env.fetch(request)()
  if (E.isLeft(answer)) throw new EntityError(answer.left, request)
  if (answer.right.scrollKey !== undefined) shown.givesKeys = true
  if (known.cutoff === undefined) {
    const [time, cutoffNotes] = chooseCutoff(answer.right.servedAt, env.now())
    known.cutoff = time
    notes.push(...cutoffNotes)
  }
  const { coveredDays = known.coveredDays } = answer.right
  if (coveredDays < known.coveredDays && request.from < known.cutoff - coveredDays * day) {
    known.coveredDays = coveredDays
    notes.push(coveredDaysNote(env.operation, coveredDays))
  }
  return answer.right
}

const askForEntity = async (known: Known, request: EntityRequest): Promise<EntityAnswer> => {
  const [id = '', ...others] = request.ids
  for (let attempt = 1; attempt <= maxAttempts; attempt += 1) {
    const answer = await fetchOnce(known, request)
    if (others.length > 0 || !isOfOther(known, request.kind, id, answer)) return answer
  }
  throw new EntityError(incomplete.otherEntity)
}

const askWithinDates = async (known: Known, request: EntityRequest): Promise<EntityAnswer> => {
  const answer = await askForEntity(known, request)
  if (request.byDays === true || !isOutside(request, answer)) return answer
  // A single answer may belong to another request.
  const again = await askForEntity(known, request)
  if (!isOutside(request, again)) return again
  if (known.shown.usesDates) known.notes.push(ignoredDatesNote(known.env.operation))
  known.shown.usesDates = false
  return again
}

/** `entities`: all entities of the run. */
export const createEntityReader = (env: ReaderEnv, entities: ReadonlyArray<Entity>): EntityReader => {
  const { operation, now, concurrency } = env
  const shown: Shown = {
    usesDates: true,
    longest: 0,
    longestGroup: 0,
    cut: Number.POSITIVE_INFINITY,
    givesKeys: false,
    maxIdentifiers: operation.maxIdentifiers,
  }
  const known: Known = {
    env,
    shown,
    keys: new Set(entities.map(entityKey)),
    ids: new Set(entities.map(({ id }) => id)),
    notes: [],
    cutoff: undefined,
    coveredDays: Number.POSITIVE_INFINITY,
  }
  return {
    operation,
    shown,
    now,
    concurrency,
    cutoff: () => known.cutoff,
    ask: (request) => askWithinDates(known, request),
    takeNotes: () => known.notes.splice(0),
  }
}

/** What the length of an answer shows: all rows are there, others follow, or the service must be asked. */
type Extent = 'complete' | 'cut' | 'unknown'

/**
 * Judges the rows of one entity. If answers reach the requested length, a shorter one is the end. An answer longer than
 * any before proves nothing: an unannounced limit may have cut it off.
 */
export const judge = (
  { longest, cut }: Shown,
  { rows, pages }: Pick<EntityRows, 'rows' | 'pages'>,
  perPage: number,
): Extent => {
  const count = rows.length
  const most = Math.max(longest, count)
  const isFiltered = hasShortPages({ cut, longest: most })
  if (perPage === Number.POSITIVE_INFINITY) return 'complete'
  if (count >= perPage || (count > 0 && count >= cut && !isFiltered)) return 'cut'
  if (count === 0) return isFiltered || (pages ?? 0) > 1 ? 'unknown' : 'complete'
  return count <= longest && (pages === 1 || (most >= perPage && !isFiltered)) ? 'complete' : 'unknown'
}

/** Records how many rows answers have; `cut`: the length of an answer that others followed. */
export const showLengths = (shown: Shown, { entities }: EntityAnswer, cut = Number.POSITIVE_INFINITY): void => {
  for (const { rows } of entities) shown.longest = Math.max(shown.longest, rows.length)
  shown.cut = Math.min(shown.cut, cut)
}

/** Rows have followed a page shorter than others: the service filters a page after cutting it. */
export const hasShortPages = ({ cut, longest }: Pick<Shown, 'cut' | 'longest'>): boolean => cut < longest

/** How many pages without rows mark the end. */
export const emptyPagesAtEnd = (shown: Shown): number => (hasShortPages(shown) ? 3 : 1)

const ignoredDatesNote = ({ name }: EntityOperation): RunNote => ({
  level: 'info',
  message:
    `${name}: the service ignores fromDate and toDate. Each entity is read ` +
    'page by page to its end, and rows outside its window are left out.',
})

const coveredDaysNote = ({ name }: EntityOperation, days: number): RunNote => ({
  level: 'warn',
  message:
    `${name}: the service goes back ${days} days at most, according to its ` +
    'answer. Older rows cannot be read; set a later start_date to match.',
})
