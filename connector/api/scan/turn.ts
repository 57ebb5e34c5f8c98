import * as E from 'fp-ts/Either'
import { type Failure, transientFailure } from '../../cdk/failure'
import type { Cut, Page } from '../page'
import { floorToSecond } from './cursor'
import { type Memory, placesOf, type Version } from './memory'
import { mentionTime } from './mention'
import { judge, newPass, type Rules, type Verdict } from './pass'
import { gather } from './recent'
import { info, type Note, signpost, warn } from './signpost'
import { type Exact, type From, nextFrom, overlapNow, type State } from './state'
import { cut, type Filters } from './window'

/** What a scan is about; the same for all its pages. */
export type Subject = {
  readonly operation: string
  readonly hasMentionTime: boolean
  readonly filters: Filters
  readonly from: From
  readonly rules: Rules
}

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
      recent: gather(state.recent, sweeping ? emitted : rows.filter(upTo(state)), nextFrom(subject.from, state)),
      unmentioned: state.unmentioned + (sweeping ? emitted.length : 0),
      exact: state.exact && { ...state.exact, unseen: state.exact.unseen + fresh.length },
    }
    return E.map(([next, more]: readonly [State, ReadonlyArray<Note>]) => ({
      state: next,
      rows: emitted,
      notes: [...notes, ...more],
    }))(onVerdict(subject, memory, kept, page, verdict))
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
  filter.limit != null && rows.length >= filter.limit ? rows.length : Math.max(longest, rows.length)

const firstRound = (): Exact => ({ round: 1, barren: 0, unseen: 0, held: new Map() })

const upTo =
  ({ signpost: post }: State) =>
  ({ modifiedTime }: Cut): boolean =>
    post !== undefined && modifiedTime <= post

/** Up to the signpost, and neither this version nor a later one sent already, as far as that is remembered. */
const freshness = (state: State): ((row: Cut, met: Version | undefined) => boolean) => {
  const due = upTo(state)
  return (row, met) => {
    if (!due(row)) return false
    const sent = state.exact === undefined ? met?.modifiedTime : state.exact.held.get(row.id)
    return sent === undefined || sent < row.modifiedTime || (state.signpost !== undefined && sent > state.signpost)
  }
}

type Onward = E.Either<Failure, readonly [State, ReadonlyArray<Note>]>

const onVerdict = (
  subject: Subject,
  memory: Memory,
  state: State,
  page: Page,
  verdict: Exclude<Verdict, { readonly _tag: 'Back' }>,
): Onward => {
  switch (verdict._tag) {
    case 'Done':
      return ended(subject, memory, state)
    case 'Next':
      return state.sorted && state.windows[0]?.kind === 'part'
        ? anchor(subject, memory, { ...state, pass: verdict.pass }, page.rows)
        : E.right([{ ...state, pass: verdict.pass }, []])
    case 'Broken': {
      if (state.windows[0]?.kind === 'part')
        return subject.rules.halving ? halved(subject, memory, state, page, verdict.why) : ended(subject, memory, state)
      const flawed = { ...state, flawed: true }
      return verdict.pass === undefined
        ? ended(subject, memory, flawed)
        : E.right([{ ...flawed, pass: verdict.pass }, []])
    }
  }
}

/** The window under way is done with, or is read once more if it has to be. */
const ended = (subject: Subject, memory: Memory, state: State): Onward => {
  memory.restart()
  const next: State = {
    ...state,
    windows: state.windows.slice(1),
    pass: newPass(state.from),
    flawed: false,
    exact: undefined,
  }
  const window = state.windows[0]
  if (window?.kind === 'exact' && state.exact !== undefined) return again(subject, state, state.exact, next)
  if (window?.kind === 'sweep' && state.flawed && state.unmentioned > 0)
    return E.right([
      next,
      [
        warn(
          `${subject.operation}: ${state.unmentioned} reviews without a mention time were read; the service changed too fast, or keeps too little order, to be sure that these are all. Compare with \`feedback verify --config\`.`,
        ),
      ],
    ])
  return E.right([next, []])
}

const mostRounds = 8
const barrenRounds = 2

const again = (subject: Subject, state: State, exact: Exact, next: State): Onward => {
  const barren = exact.unseen === 0 ? exact.barren + 1 : 0
  if (barren >= barrenRounds)
    return E.right([
      next,
      [info(`${subject.operation}: ${exact.held.size} ids were held in memory to read a part that keeps no order.`)],
    ])
  return exact.round >= mostRounds
    ? E.left(
        transientFailure(
          `${subject.operation}: the service's rows changed place faster than they could be read, in ${mostRounds} attempts. The cursor of the stream did not move: run again, at a quieter time if possible.`,
        ),
      )
    : E.right([
        {
          ...state,
          pass: newPass(state.from),
          flawed: false,
          exact: { ...exact, round: exact.round + 1, barren, unseen: 0 },
        },
        [],
      ])
}

const halved = (subject: Subject, memory: Memory, state: State, page: Page, why: string): Onward => {
  const [window, ...others] = state.windows
  if (window === undefined) return E.right([state, []])
  memory.restart()
  const parts = cut(subject.filters, window, {
    mentions: subject.hasMentionTime ? page.rows.map(mentionTime).filter((time) => time !== undefined) : undefined,
    sources: (page.filter.sources ?? []).map(Number).filter(Number.isSafeInteger),
    signpost: state.signpost ?? 0,
  })
  const first = state.windows.length === 1 && Object.keys(window).length === 1
  const message = `${subject.operation}: ${why}; the rest is read in smaller parts, some rows twice.`
  return E.right([
    { ...state, windows: [...parts, ...others], pass: newPass(state.from), flawed: false },
    [first ? warn(message) : { level: 'debug', message }],
  ])
}

/** In the order of modifiedTime: goes on from the second that the last row lies in, and ends at the first row after the signpost. */
const anchor = (subject: Subject, memory: Memory, state: State, rows: ReadonlyArray<Cut>): Onward => {
  const last = rows[rows.length - 1]
  if (rows.some(({ modifiedTime }, i) => modifiedTime < (rows[i - 1]?.modifiedTime ?? modifiedTime))) {
    memory.restart()
    return E.right([
      { ...state, sorted: false, pass: newPass(state.from) },
      [
        warn(
          `${subject.operation}: the rows do not come in the order of modifiedTime. They are read anew as if in no order; set export_order to unspecified.`,
        ),
      ],
    ])
  }
  if (last === undefined) return E.right([state, []])
  if (!upTo(state)(last)) return ended(subject, memory, state)
  const from = floorToSecond(last.modifiedTime) - 1
  if (state.pass.confirming || from <= state.pass.from) return E.right([state, []])
  memory.restart()
  return E.right([{ ...state, pass: { ...newPass(from), late: state.pass.late } }, []])
}
