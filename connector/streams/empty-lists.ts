import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import * as t from 'io-ts'
import { toMillis } from '../api'
import { type Failure, type Feed, type Reader, type ReaderEvent, type StreamRequest, transientFailure } from '../cdk'
import { reviewExportOperation } from './reviews'
import type { SourceEnv } from './source-env'
import { warningEvent } from './warnings'

/** The pauses before an empty list is requested again, in milliseconds: 15 seconds in total. */
const waits = [500, 1_000, 2_000, 4_000, 7_500]

/**
 * Reads like `reader`, but requests an empty list again if a complete list replaces what its consumer has: an empty
 * answer proves nothing. If the list stays empty although rows of it are known, its streams fail so that nothing is
 * removed, unless the config accepts empty lists. The streams of one reader share one list.
 */
export const withSecondLook = <Item>(reader: Reader<SourceEnv, Item>): Reader<SourceEnv, Item> => ({
  name: reader.name,
  read: (source) => (requests) =>
    requests.some(isReplacedWhole) ? readTwice(reader, source, requests) : reader.read(source)(requests),
})

/** A complete read removes the rows that it does not bring. An incremental read with a state only adds rows. */
const isReplacedWhole = ({ replaces, syncMode, state }: StreamRequest<never>): boolean =>
  replaces === true && (syncMode === 'full_refresh' || O.isNone(state))

async function* readTwice<Item>(
  reader: Reader<SourceEnv, Item>,
  source: SourceEnv,
  requests: ReadonlyArray<StreamRequest<Item>>,
): Feed<Failure, ReaderEvent> {
  const reported = new Set<string>()
  let empty = yield* look(reader, source, requests, reported)
  if (empty.length === 0) return
  const isKnown = await knowsRowsOf(source, empty)
  if (!isKnown && isShare(reader, source)) {
    yield* heldEvents(empty)
    return
  }
  const message = `${reader.name}: no rows came. Asking again for 15 seconds.`
  yield E.right({ _tag: 'Note', level: 'info', message })
  for (const wait of waits) {
    await source.wait?.(wait)()
    forgetEmptyScans(source)
    const again = empty.map(({ request }) => request)
    empty = yield* look(reader, source, again, reported)
    if (empty.length === 0) return
  }
  yield* isKnown && source.acceptEmptyLists !== true ? refuse(reader.name, empty) : accept(reader.name, empty)
}

/** Months without a review are normal in a backfill. */
const isShare = ({ name }: { readonly name: string }, { partition }: SourceEnv): boolean =>
  O.isSome(partition) && name === reviewExportOperation.name

const stillEmpty = (name: string): string => `${name}: the list was empty each time it was requested, for 15 seconds`

function* accept(name: string, empty: ReadonlyArray<Watched<never>>): Iterable<E.Either<never, ReaderEvent>> {
  const streams = empty.filter(({ skipped }) => skipped === undefined).map(({ request }) => request.stream)
  if (streams.length > 0)
    yield E.right(warningEvent(`${stillEmpty(name)}. It counts as empty: no rows of ${streams.join(', ')}.`))
  yield* heldEvents(empty)
}

function* refuse(name: string, empty: ReadonlyArray<Watched<never>>): Iterable<E.Either<never, ReaderEvent>> {
  const failure = transientFailure(
    [
      `${stillEmpty(name)}, although an earlier run has read rows of it. They are kept, and the next run asks again.`,
      'If the list is really empty, set accept_empty_lists to true.',
    ].join(' '),
  )
  for (const { request } of empty) yield E.right({ _tag: 'Failed', stream: request.stream, failure })
}

type NoteEvent = Extract<ReaderEvent, { _tag: 'Note' }>

/** A stream that a complete list replaces, while its list is read. */
type Watched<Item> = {
  readonly request: StreamRequest<Item>
  /** Its list has shown a row. */
  hasRows: boolean
  /** Its newest checkpoint. If the list stays empty, it must not replace a state that knows rows. */
  checkpoint: Extract<ReaderEvent, { _tag: 'Checkpoint' }> | undefined
  /** Its note that there was nothing to read. */
  skipped: NoteEvent | undefined
}

/**
 * Reads once. Holds back what would end a stream whose list has shown no row, and returns these streams. `reported`:
 * the notes already sent, since each is sent once.
 */
async function* look<Item>(
  reader: Reader<SourceEnv, Item>,
  source: SourceEnv,
  requests: ReadonlyArray<StreamRequest<Item>>,
  reported: Set<string>,
): AsyncGenerator<E.Either<Failure, ReaderEvent>, ReadonlyArray<Watched<Item>>> {
  const watched = new Map(requests.filter(isReplacedWhole).map((request) => [request.stream, watch(request)]))
  const watching = requests.map((request) => {
    const found = watched.get(request.stream)
    return found === undefined ? request : { ...request, project: watchItems(found) }
  })
  for await (const next of reader.read(source)(watching)) {
    if (E.isLeft(next)) {
      // When a list is requested again, the other streams of its reader have ended, so only these fail.
      for (const found of watched.values()) yield* releaseProgress(source, found)
      for (const { stream } of requests) yield E.right({ _tag: 'Failed', stream, failure: next.left })
      return []
    }
    const event = next.right
    if (event._tag === 'Note') {
      if (!holdNote(source, watched, event) && !reported.has(event.message)) yield next
      reported.add(event.message)
      continue
    }
    if (event._tag === 'SharedRows') {
      // These events show that the lists of all these streams have rows, even if a stream makes no row of them.
      for (const name of event.streams) yield* noteRows(source, watched.get(name))
      yield next
      continue
    }
    const found = watched.get(event.stream)
    if (found === undefined) yield next
    else yield* passOn(source, found, event)
    if (event._tag === 'Failed') watched.delete(event.stream)
  }
  const empty = [...watched.values()].filter((found) => isEmpty(source, found))
  for (const found of watched.values()) if (!empty.includes(found)) yield* releaseCheckpoint(source, found)
  return empty
}

function* noteRows(source: SourceEnv, found: Watched<never> | undefined): Iterable<E.Either<never, ReaderEvent>> {
  if (found === undefined) return
  found.hasRows = true
  yield* releaseCheckpoint(source, found)
}

/**
 * Sends an event of a watched stream, after what was held back. Its newest checkpoint waits until its list shows a row.
 */
function* passOn(
  source: SourceEnv,
  found: Watched<never>,
  event: Exclude<ReaderEvent, NoteEvent | { readonly _tag: 'SharedRows' }>,
): Iterable<E.Either<never, ReaderEvent>> {
  if (event._tag === 'Rows') found.hasRows ||= event.rows.length > 0
  yield* found.hasRows ? releaseCheckpoint(source, found) : releaseProgress(source, found)
  if (event._tag !== 'Checkpoint') return yield E.right(event)
  found.checkpoint = event
  if (found.hasRows) yield* releaseCheckpoint(source, found)
}

/**
 * Sends the held checkpoint only if its state says more than that an export has begun: the entities found, the one to
 * begin with, or the progress of a resumed scan.
 */
function* releaseProgress(source: SourceEnv, found: Watched<never>): Iterable<E.Either<never, ReaderEvent>> {
  const state = found.checkpoint?.state()
  const saves = t.UnknownRecord.is(state) && (state.entityStates !== undefined || isScanning(found.request.state))
  if (saves) yield* releaseCheckpoint(source, found)
}

const isScanning = (state: O.Option<unknown>): boolean =>
  O.isSome(state) && t.UnknownRecord.is(state.value) && state.value.scan !== undefined

/**
 * Holds back a stream's note that no entities were found, if no reviews came. A stream for which the config names no
 * entities has no list.
 */
const holdNote = (source: SourceEnv, watched: Map<string, Watched<never>>, note: NoteEvent): boolean => {
  const found = note.skipped === undefined ? undefined : watched.get(note.skipped)
  if (found === undefined) return false
  if (lacksReviews(source)) found.skipped = note
  else watched.delete(found.request.stream)
  return found.skipped !== undefined
}

const watch = <Item>(request: StreamRequest<Item>): Watched<Item> => ({
  request,
  hasRows: isContinuedRefresh(request.state),
  checkpoint: undefined,
  skipped: undefined,
})

/** An item shows that the list has rows, even if the stream makes no row of it, such as a review without tasks. */
const watchItems =
  <Item>(found: Watched<Item>): StreamRequest<Item>['project'] =>
  (item) => {
    found.hasRows = true
    return found.request.project(item)
  }

const isEmpty = (source: SourceEnv, { hasRows, checkpoint }: Watched<never>): boolean =>
  !hasRows && !(checkpoint !== undefined && knowsRows(source, checkpoint.state()))

/** The run takes entities from reviews, and no scan of it has found a review. */
const lacksReviews = (source: SourceEnv): boolean => {
  const { locations, providers } = source.entities.fromReviews
  return (
    (locations || providers !== 'none') &&
    !source.entityIndex.completeScans.some(({ state }) => knowsRows(source, state))
  )
}

/** Forgets a scan that found no reviews, so that a search for entities asks again. */
const forgetEmptyScans = (source: SourceEnv): void => {
  const { completeScans } = source.entityIndex
  completeScans.splice(0, completeScans.length, ...completeScans.filter(({ state }) => knowsRows(source, state)))
}

function* heldEvents(empty: ReadonlyArray<Watched<never>>): Iterable<E.Either<never, ReaderEvent>> {
  for (const { checkpoint, skipped } of empty)
    for (const event of [skipped, checkpoint]) if (event !== undefined) yield E.right(event)
}

/** Sends the held checkpoint. Its state shows that rows are known; the cursor alone does not. */
function* releaseCheckpoint(source: SourceEnv, found: Watched<never>): Iterable<E.Either<never, ReaderEvent>> {
  const { checkpoint, hasRows, request } = found
  if (checkpoint === undefined) return
  found.checkpoint = undefined
  const isKnown = hasRows || knowsRows(source, request.previous)
  yield E.right(isKnown ? { ...checkpoint, state: () => addKnownRows(checkpoint.state()) } : checkpoint)
}

const addKnownRows = (state: unknown): unknown =>
  t.UnknownRecord.is(state) && state.modifiedTimeFrom === undefined ? { ...state, hasRows: true } : state

/** The state is that of a run that has read rows. The cursor of an export without rows is the start date. */
const knowsRows = ({ startDate }: Pick<SourceEnv, 'startDate'>, state: unknown): boolean =>
  t.UnknownRecord.is(state) &&
  (state.hasRows === true ||
    state.scan !== undefined ||
    state.recent !== undefined ||
    state.recentRange !== undefined ||
    toMillis(String(state.modifiedTimeFrom)) > startDate)

/** The run resumes a full refresh by entity that has already sent rows, so there may be none left. */
const isContinuedRefresh = (state: O.Option<unknown>): boolean =>
  O.isSome(state) &&
  t.UnknownRecord.is(state.value) &&
  state.value.refreshing === true &&
  state.value.hasRows === true &&
  Object.values(state.value.entityStates ?? {}).some(({ digest }) => digest !== undefined)

/** Rows of the list are known, from a state or from the file that receives the records. */
const knowsRowsOf = async (source: SourceEnv, empty: ReadonlyArray<Watched<never>>): Promise<boolean> => {
  const requests = empty.map(({ request }) => request)
  if (requests.some(({ previous }) => knowsRows(source, previous))) return true
  const [first] = requests
  return (await first?.holdsRows?.(requests.map(({ stream }) => stream))) === true
}
