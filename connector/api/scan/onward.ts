import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import { configFailure, type Failure, transientFailure } from '../../cdk/failure'
import type { Cut, Page } from '../page'
import { floorToSecond } from './cursor'
import type { Memory } from './memory'
import { mentionTime } from './mention'
import { newPass, type Verdict } from './pass'
import { info, type Note, warn } from './signpost'
import { type Exact, isDue, type State } from './state'
import type { Subject } from './subject'
import { cut } from './window'

type Onward = E.Either<Failure, readonly [State, ReadonlyArray<Note>]>

/** Where a scan goes on after a page that was taken. */
export const onward = (
  subject: Subject,
  memory: Memory,
  state: State,
  page: Page,
  verdict: Exclude<Verdict, { readonly _tag: 'Back' }>,
): Onward => {
  switch (verdict._tag) {
    case 'Done':
      return pipe(
        ended(subject, memory, state),
        E.map(([next, notes]) => [next, verdict.unmoved ? [...notes, unmoved(subject, page)] : notes]),
      )
    case 'Next':
      return state.sorted && state.windows[0]?.kind === 'part'
        ? anchor(subject, memory, { ...state, pass: verdict.pass }, page.rows)
        : E.right([{ ...state, pass: verdict.pass }, []])
    case 'Broken': {
      if (state.windows[0]?.kind === 'part')
        return subject.rules.halving ? halved(subject, memory, state, page, verdict.why) : ended(subject, memory, state)
      if (verdict.unmoved && state.windows[0]?.kind === 'exact') return E.left(unturned(subject))
      const flawed = { ...state, flawed: true }
      if (verdict.unmoved)
        return pipe(
          ended(subject, memory, flawed),
          E.map(([next, notes]) => [next, [...notes, unreached(subject)]]),
        )
      return verdict.pass === undefined
        ? ended(subject, memory, flawed)
        : E.right([{ ...flawed, pass: verdict.pass }, []])
    }
  }
}

const unmoved = ({ operation }: Subject, { rows }: Page): Note =>
  warn(
    `${operation}: the same ${rows.length} rows come at every offset. They are fewer than a page may hold, so they are taken for all there are.`,
  )

const unreached = ({ operation }: Subject): Note =>
  warn(
    `${operation}: from some offset on the same rows come again and again, so reviews without a mention time that stand behind cannot be reached. Compare with \`feedback verify --config\`.`,
  )

const unturned = ({ operation }: Subject): Failure =>
  configFailure(
    `${operation}: the service does not heed offset: the same rows come at further offsets, and no smaller part could be asked for. Nobody can be sure to have read everything, so the cursor of the stream did not move; ask the service's operator.`,
  )

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

/** The most that one request may ask for (Limits): what keeps no order is best read in one page. */
const mostRows = 1000

const halved = (subject: Subject, memory: Memory, state: State, page: Page, why: string): Onward => {
  const [window, ...others] = state.windows
  if (window === undefined) return E.right([state, []])
  memory.restart()
  const parts = cut(subject.filters, window, {
    mentions: subject.hasMentionTime ? page.rows.map(mentionTime).filter((time) => time !== undefined) : undefined,
    signpost: state.signpost ?? 0,
  })
  const limit = parts[0]?.kind === 'exact' ? Math.max(state.limit, mostRows) : state.limit
  const first = state.windows.length === 1 && Object.keys(window).length === 1
  const message = `${subject.operation}: ${why}; the rest is read in smaller parts, some rows twice.`
  return E.right([
    { ...state, limit, windows: [...parts, ...others], pass: newPass(state.from), flawed: false },
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
  if (!isDue(state)(last)) return ended(subject, memory, state)
  const from = floorToSecond(last.modifiedTime) - 1
  if (state.pass.confirming || from <= state.pass.from) return E.right([state, []])
  memory.restart()
  return E.right([{ ...state, pass: { ...newPass(from), late: state.pass.late } }, []])
}
