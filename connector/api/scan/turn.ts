import * as E from 'fp-ts/Either'
import type { Failure } from '../../cdk/failure'
import type { Cut, Page } from '../page'
import { type Memory, placesOf, type Version } from './memory'
import { mentionTime } from './mention'
import { onward } from './onward'
import { judge } from './pass'
import { gather } from './recent'
import { type Note, signpost, warn } from './signpost'
import { type Exact, isDue, nextFrom, overlapNow, type State } from './state'
import type { Subject } from './subject'

/** What came of a page. */
export type Turn = { readonly state: State; readonly rows: ReadonlyArray<Cut>; readonly notes: ReadonlyArray<Note> }

/** Judges the page that `state` asked for. Changes `memory`. */
export const turn =
  (subject: Subject, memory: Memory) =>
  (before: State, page: Page, now: number): E.Either<Failure, Turn> => {
    const [state, notes] = arrive(subject, before, page, now)
    const { rows } = page
    const met = rows.map(({ id }) => memory.last(id))
    const isFresh = freshness(state)
    const fresh = rows.filter((row, i) => isFresh(row, met[i]))
    const known = rows.map((row, i) => memory.place(row, met[i]))
    const end = memory.end()
    const places = placesOf(known, end, state.pass.offset === 0 ? 0 : end + 1)
    const verdict = judge(subject.rules)(state.pass, {
      rows,
      known,
      fresh,
      longest: state.longest,
      overlap: overlapNow(state),
      part: isCut(state),
      same: state.pass.offset > 0 && rows.length > 0 && memory.isLast(rows),
      scant: page.filter.limit != null && rows.length < page.filter.limit && rows.length !== state.fullest,
      loose: state.flawed && state.windows[0]?.kind === 'sweep',
      behind: isOrdered(state) ? Math.max(0, Math.round(end - (places[places.length - 1] ?? end))) : 0,
      reached: Math.min(state.signpost ?? 0, state.reached ?? Number.NEGATIVE_INFINITY),
    })
    if (verdict._tag === 'Back') return E.right({ state: { ...state, pass: verdict.pass }, rows: [], notes })

    memory.add(rows, places)
    const sweeping = state.windows[0]?.kind === 'sweep'
    const emitted = sweeping ? fresh.filter((row) => mentionTime(row) === undefined) : fresh
    if (state.exact !== undefined) for (const { id, modifiedTime } of fresh) state.exact.held.set(id, modifiedTime)
    const kept: State = {
      ...state,
      taken: state.taken + 1,
      recent: gather(state.recent, sweeping ? emitted : rows.filter(isDue(state)), nextFrom(subject.from, state)),
      unmentioned: state.unmentioned + (sweeping ? emitted.length : 0),
      exact: state.exact && { ...state.exact, unseen: state.exact.unseen + fresh.length },
    }
    return E.map(([next, more]: readonly [State, ReadonlyArray<Note>]) => ({
      state: next,
      rows: emitted,
      notes: [...notes, ...more],
    }))(onward(subject, memory, kept, page, verdict))
  }

/** Nothing speaks against an order yet. */
const isOrdered = ({ windows, flawed }: State): boolean => windows[0]?.kind !== 'exact' && !flawed

/** The window under way is not all that was asked for. */
const isCut = ({ windows }: State): boolean => windows[0]?.kind === 'part' && Object.keys(windows[0]).length > 1

/** The first page sets the signpost; every page tells how far the rows' own clock had come. */
const arrive = (subject: Subject, state: State, page: Page, now: number): readonly [State, ReadonlyArray<Note>] => {
  const [post, notes] = state.signpost === undefined ? signpost(page.servedAt, now) : [state.signpost, []]
  const newest = page.rows.reduce((time, row) => Math.max(time, row.modifiedTime), Number.NEGATIVE_INFINITY)
  const reached = newest - Math.max(0, now - state.begun)
  const { cursor } = subject.from
  const early = state.signpost === undefined && cursor._tag === 'Some' && cursor.value > post + 300_000
  return [
    {
      ...state,
      signpost: post,
      longest: lengthNow(state, page),
      fullest: page.rows.length >= state.limit ? Math.max(state.fullest, page.rows.length) : state.fullest,
      reached: Number.isFinite(reached) ? Math.max(state.reached ?? reached, reached) : state.reached,
      newest: page.rows.reduce(
        (time, { modifiedTime }) =>
          modifiedTime <= post && !(time !== undefined && time > modifiedTime) ? modifiedTime : time,
        state.newest,
      ),
      exact: state.exact ?? (state.windows[0]?.kind === 'exact' ? firstRound() : undefined),
    },
    early
      ? [
          ...notes,
          warn(
            `${subject.operation}: the cursor in the state (${new Date(cursor.value).toISOString()}) lies in the future. It is kept, and nothing newer can be read before then; set it back if that is a mistake.`,
          ),
        ]
      : notes,
  ]
}

/** The longest page so far; a page that is full by the limit its echo tells shows what the service clamps ours to now. */
const lengthNow = ({ longest }: State, { rows, filter }: Page): number =>
  filter.limit != null && filter.limit > 0 && rows.length >= filter.limit ? rows.length : Math.max(longest, rows.length)

const firstRound = (): Exact => ({ round: 1, barren: 0, unseen: 0, held: new Map() })

/** Up to the signpost, and neither this version nor a later one sent already, as far as that is remembered. */
const freshness = (state: State): ((row: Cut, met: Version | undefined) => boolean) => {
  const due = isDue(state)
  return (row, met) => {
    if (!due(row)) return false
    const sent = state.exact === undefined ? met?.modifiedTime : state.exact.held.get(row.id)
    return sent === undefined || sent < row.modifiedTime || (state.signpost !== undefined && sent > state.signpost)
  }
}
