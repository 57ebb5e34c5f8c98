import * as E from 'fp-ts/Either'
import { toMillis } from '../../api'
import {
  type EntityAnswer,
  EntityError,
  type EntityRequest,
  type EntityResult,
  type EntityRows,
  incomplete,
  isKeyRefusal,
  rowsOfEntity,
} from './answer'
import { readToEnd } from './pages'
import { type EntityReader, emptyPagesAtEnd, judge, showLengths } from './reader'
import type { EntityKind } from './selection'

/** A window of one entity, milliseconds. Ends with the run. */
export type EntityWindow = {
  readonly kind: EntityKind
  readonly id: string
  /** At a whole second. */
  readonly from: number
  /** No earlier run has read it, and no later one will read it again. */
  readonly isFirst: boolean
  /** The rows that an answer about several entities had of it, and if that was a full page. */
  readonly known?: EntityRows | undefined
  readonly isCut?: boolean
}

/** The window with its end. */
type Step = EntityWindow & { readonly to: number; readonly expected: EntityRows['rows'] }

const second = 1000
const day = 86_400_000
const maxAttempts = 3

/** The most requests for an entity. Gives up on a service whose rows never end. */
const maxRequests = 100_000

/** Sends requests for one entity, up to a maximum, and some of them before they are needed. */
type EntityAsker = EntityReader & {
  /** Starts requests that will probably be needed next. Drops earlier ones that are not among them. */
  readonly begin: (requests: ReadonlyArray<EntityRequest>) => void
}

const createAsker = (reader: EntityReader): EntityAsker => {
  let begun = new Map<string, Promise<EntityAnswer>>()
  let count = 0
  const send = (request: EntityRequest): Promise<EntityAnswer> => {
    count += 1
    return count > maxRequests ? Promise.reject(new EntityError(incomplete.endless)) : reader.ask(request)
  }
  return {
    ...reader,
    ask: (request) => {
      const key = JSON.stringify(request)
      const answer = begun.get(key) ?? send(request)
      begun.delete(key)
      return answer
    },
    begin: (requests) => {
      const entries = requests.map((request): [string, Promise<EntityAnswer>] => {
        const key = JSON.stringify(request)
        const answer = begun.get(key) ?? send(request)
        answer.catch(() => undefined)
        return [key, answer]
      })
      begun = new Map(entries)
    },
  }
}

/** The time up to which a run reads. Before its first answer, far enough in the future to include everything. */
export const endOfRun = (reader: EntityReader): number => reader.cutoff() ?? reader.now() + day

/**
 * Reads an entity's window in steps, in order of time. A step that may have more rows than its answer is halved; after
 * one that is less than half full, the step length doubles. Only a step of one second, and an entity of a service that
 * ignores dates, is read page by page.
 */
export async function* readEntity(all: EntityReader, window: EntityWindow): AsyncGenerator<EntityResult> {
  const reader = createAsker(all)
  const { kind, id } = window
  let { from } = window
  let expected = window.known?.rows ?? []
  let step = window.isCut === true ? shorten(endOfRun(reader) - from, window.known?.pages) : Number.POSITIVE_INFINITY
  while (from < endOfRun(reader)) {
    if (!reader.shown.usesDates) return yield* readToEnd(reader, { ...window, from, to: endOfRun(reader) })
    const current: Step = { ...window, from, to: Math.min(endOfRun(reader), from + step + 1), expected }
    const isSecond = current.to - from <= second + 1
    const read = await readStep(reader, current)
    if (!reader.shown.usesDates) continue
    if (read._tag === 'Cut' && !isSecond) {
      step = shorten(current.to - from, step === Number.POSITIVE_INFINITY ? read.answer?.pages : undefined)
      expected = read.answer?.rows ?? expected
      continue
    }
    const rows = read._tag === 'Cut' ? await readSecond(reader, current) : read.answer
    const isLast = current.to >= endOfRun(reader)
    // Windows overlap by a millisecond, since it is unknown if the bounds are inclusive.
    from = current.to - 1
    if (read._tag === 'Complete' && read.isSparse) step *= 2
    else if (!isLast) reader.begin(stepsAhead(reader, window, from, step))
    yield { kind, id, to: isLast ? undefined : current.to, answer: E.right(rows) }
    if (isLast) return
  }
}

const toRequest = (reader: EntityReader, { kind, id }: EntityWindow, from: number, to: number): EntityRequest => ({
  kind,
  ids: [id],
  from,
  to,
  page: reader.operation.firstPage,
})

/** The requests of the next steps, if they stay as long as the last one. */
const stepsAhead = (
  reader: EntityReader,
  window: EntityWindow,
  from: number,
  step: number,
): ReadonlyArray<EntityRequest> => {
  const end = endOfRun(reader)
  return Array.from({ length: reader.concurrency }, (_, n) => from + n * step)
    .filter((start) => start < end)
    .map((start) => toRequest(reader, window, start, Math.min(end, start + step + 1)))
}

/** What a request for a step has shown. */
type StepRead =
  | { readonly _tag: 'Complete'; readonly answer: EntityRows | undefined; readonly isSparse: boolean }
  | { readonly _tag: 'Cut'; readonly answer?: EntityRows | undefined }

/**
 * The step after a window that was cut off: one part for each page in the answer, or half; milliseconds, whole seconds.
 */
const shorten = (length: number, pages = 2): number =>
  Math.ceil((length - 1) / Math.min(8, Math.max(2, pages)) / second) * second

const readStep = async (reader: EntityReader, step: Step): Promise<StepRead> => {
  for (let attempt = 1; ; attempt += 1) {
    const answer = await askStep(reader, step)
    if (answer === undefined || !reader.shown.usesDates) return { _tag: 'Cut' }
    const found = rowsOfEntity(step.id, answer)
    const rows = found?.rows ?? []
    const end = await findEnd(reader, step, answer)
    if (end === 'cut') return { _tag: 'Cut', answer: found }
    if (end === 'complete') return { _tag: 'Complete', answer: found, isSparse: 2 * rows.length < answer.perPage }
    // Rows have disappeared or moved since.
    if (attempt === maxAttempts) return { _tag: 'Cut', answer: found }
  }
}

/** The first page of a step; undefined if it is too large for an answer. */
const askStep = async (reader: EntityReader, step: Step): Promise<EntityAnswer | undefined> => {
  const { operation } = reader
  const request = toRequest(reader, step, step.from, step.to)
  for (let attempt = 1; ; attempt += 1) {
    try {
      const answer = await reader.ask(request)
      const rows = rowsOfEntity(step.id, answer)?.rows ?? []
      // An empty answer proves nothing. It is requested twice if no later run reads the window again.
      const isDoubtful =
        lacksExpected(operation.key, step, rows) || (step.isFirst && rows.length === 0 && attempt === 1)
      if (!isDoubtful || attempt === maxAttempts) return answer
    } catch (error) {
      if (!(error instanceof EntityError) || error.error._tag !== 'TooLarge') throw error
      return undefined
    }
  }
}

/**
 * A row this close to an end of the step (milliseconds) may be missing, since it is unknown which rows the bounds
 * include.
 */
const edge = 1000

/** Rows well inside the step are missing: they were deleted, or the answer is not what it seems. */
const lacksExpected = (key: string, { expected, from, to }: Step, rows: EntityRows['rows']): boolean => {
  const keys = new Set(rows.map((row) => String(row[key])))
  return expected.some((row) => {
    const time = toMillis(String(row.mentionTime))
    return time > from + edge && time < to - edge && !keys.has(String(row[key]))
  })
}

/** Decides if the rows of a first page are all of their step. Changed: they were, or were not, when it was served. */
const findEnd = async (
  reader: EntityReader,
  step: Step,
  answer: EntityAnswer,
): Promise<'complete' | 'cut' | 'changed'> => {
  const { shown } = reader
  const found = rowsOfEntity(step.id, answer) ?? { rows: [] }
  const extent = judge(shown, found, answer.perPage)
  showLengths(shown, answer)
  if (extent !== 'unknown') return extent
  const end = await askBehind(reader, step, answer, found.rows)
  if (end === 'cut') showLengths(shown, answer, found.rows.length)
  return end
}

/** Requests what follows a first page: by its key, and by pages. */
const askBehind = async (
  reader: EntityReader,
  step: Step,
  { scrollKey, days }: EntityAnswer,
  rows: EntityRows['rows'],
): Promise<'complete' | 'cut' | 'changed'> => {
  const { key, firstPage } = reader.operation
  const request = toRequest(reader, step, step.from, step.to)
  const keys = rows.map((row) => String(row[key]))
  const known = new Set(keys)
  const keysOf = (answer: EntityAnswer): ReadonlyArray<string> =>
    (rowsOfEntity(step.id, answer)?.rows ?? []).map((row) => String(row[key]))
  const hasOthers = (answer: EntityAnswer): boolean => keysOf(answer).some((one) => !known.has(one))
  if (scrollKey !== undefined) {
    const next = await askByKey(reader, { ...request, scrollKey, ...(days === undefined ? {} : { days }) })
    if (next !== undefined && hasOthers(next)) return 'cut'
  }
  const witnesses = Math.min(4, Math.floor((rows.length - 1) / 2))
  if (rows.length === reader.shown.longest && witnesses > 0) {
    // As many rows as ever before, so an unannounced limit may have cut them off. Requests the last rows of the first
    // page with room after them: the list ends where they are.
    const perPage = rows.length - witnesses
    const end = keysOf(await reader.ask({ ...request, page: firstPage + 1, perPage }))
    if (end.some((one) => !known.has(one))) return 'cut'
    if (end.length === witnesses && witnesses > 1) return 'complete'
    if (end.length < witnesses) return 'changed'
  }
  for (let page = 1; page <= emptyPagesAtEnd(reader.shown); page += 1) {
    const next = await reader.ask({ ...request, page: firstPage + page })
    if (hasOthers(next)) return 'cut'
    if (next.isRefused) break
  }
  return 'complete'
}

const askByKey = async (
  reader: EntityReader,
  request: Parameters<EntityReader['ask']>[0],
): Promise<EntityAnswer | undefined> => {
  try {
    return await reader.ask(request)
  } catch (error) {
    if (error instanceof EntityError && isKeyRefusal(error.error)) return undefined
    throw error
  }
}

/** Reads all rows of one second, which cannot be halved. */
const readSecond = async (reader: EntityReader, step: Step): Promise<EntityRows> => {
  const { key } = reader.operation
  const rows = new Map<string, EntityRows['rows'][number]>()
  let name: unknown
  for await (const { answer } of readToEnd(reader, step)) {
    const found = E.isRight(answer) ? answer.right : undefined
    name ??= found?.name
    for (const row of found?.rows ?? []) rows.set(String(row[key]), row)
  }
  return { id: step.id, name, rows: [...rows.values()] }
}
