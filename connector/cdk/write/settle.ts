import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import type { TaskEither } from 'fp-ts/TaskEither'
import type { Failure } from '../failure'
import type { Answer, OpenSink, Verdict } from '../sink'

/** A verdict that stands. */
export type Final = Exclude<Verdict, { _tag: 'Unknown' }>

export type Settled = {
  /** One for each item, in their order. */
  readonly verdicts: ReadonlyArray<Final>
  /** The most items that a batch should have from now on, where that was found out. */
  readonly most: O.Option<number>
}

/** An item that the service fails on alone; rejected if the service takes others, else the service is at fault. */
type Suspect = { readonly _tag: 'Suspect'; readonly reason: string; readonly failure: Failure }

type Tried = { readonly verdicts: ReadonlyArray<Final | Suspect>; readonly most: O.Option<number> }

/** A batch on its way to its verdicts. */
type Trial<Item> = Pick<OpenSink<Item>, 'write' | 'answers'> & {
  /** How often the service took any item, of whatever batch. */
  readonly taken: () => number
  /** The same when this batch had failed as a whole, time and again. */
  failedAt: number
  suspects: number
}

/** How many items may fail alone with none taken meanwhile: then it is the service that fails. */
const mostSuspects = 8

/**
 * Sends a batch until each of its items has a verdict: one that is refused as a whole, or that the service fails on time and again
 * while it is there, is halved until the bad item stands alone; items of which the answer does not tell are sent once more, then rejected.
 */
export const settle = <Item>({
  write,
  answers,
}: Pick<OpenSink<Item>, 'write' | 'answers'>): ((items: ReadonlyArray<Item>) => TaskEither<Failure, Settled>) => {
  let taken = 0
  const counted: OpenSink<Item>['write'] = (items, suspected) => async () => {
    const answer = await write(items, suspected)()
    if (E.isRight(answer) && accepts(answer.right)) taken += 1
    return answer
  }
  return (items) => async () => {
    const trial: Trial<Item> = { write: counted, answers, taken: () => taken, failedAt: 0, suspects: 0 }
    const tried = await attempt(trial, 2, false)(items)()
    return E.isLeft(tried) ? tried : sentence(trial, items, tried.right)()
  }
}

/** Whether the service has taken anything since the batch had failed: then it is there, and it was not before that. */
const isTaking = ({ taken, failedAt }: Trial<never>): boolean => taken() > failedAt

const accepts = (answer: Answer): boolean =>
  answer._tag === 'Verdicts' && answer.verdicts.some(({ _tag }) => _tag === 'Accepted')

const isSuspect = (verdict: Final | Suspect): verdict is Suspect => verdict._tag === 'Suspect'

/** Suspects are sent once more now that the service takes others: it may only have been away for a while. */
const sentence =
  <Item>(trial: Trial<Item>, items: ReadonlyArray<Item>, { verdicts, most }: Tried): TaskEither<Failure, Settled> =>
  async () => {
    const finals: Array<Final> = []
    for (const [index, verdict] of verdicts.entries()) {
      if (!isSuspect(verdict)) {
        finals.push(verdict)
        continue
      }
      if (!isTaking(trial)) return E.left(verdict.failure)
      const again = await attempt(trial, 1, true)(items.slice(index, index + 1))()
      if (E.isLeft(again)) return again
      const last = again.right.verdicts[0] ?? lost
      finals.push(isSuspect(last) ? { _tag: 'Rejected', reason: last.reason } : last)
    }
    return E.right({ verdicts: finals, most })
  }

const attempt =
  <Item>(trial: Trial<Item>, tries: number, suspected: boolean) =>
  (items: ReadonlyArray<Item>): TaskEither<Failure, Tried> =>
  async () => {
    const answer = await trial.write(items, suspected)()
    if (E.isLeft(answer)) return answer
    const said = answer.right
    switch (said._tag) {
      case 'Verdicts':
        return onceMore(trial, items, said.verdicts, tries - 1, suspected)()
      case 'Refused':
        return items.length <= 1
          ? E.right(alike(items, { _tag: 'Rejected', reason: said.reason }))
          : halves(attempt(trial, tries, suspected), items, said.tooLarge)()
      case 'Unanswered': {
        const { reason, failure } = said
        if (!suspected) trial.failedAt = trial.taken()
        if (!suspected && !(await trial.answers())) return E.left(failure)
        if (items.length > 1) return halves(attempt(trial, tries, true), items, false)()
        trial.suspects += 1
        if (trial.suspects >= mostSuspects && !isTaking(trial)) return E.left(failure)
        return E.right(alike(items, { _tag: 'Suspect', reason, failure }))
      }
    }
  }

const alike = (items: ReadonlyArray<unknown>, verdict: Final | Suspect): Tried => ({
  verdicts: items.map(() => verdict),
  most: O.none,
})

/** Where both halves pass without a bad item, it was the size that was refused. */
const halves =
  <Item>(
    settleHalf: (items: ReadonlyArray<Item>) => TaskEither<Failure, Tried>,
    items: ReadonlyArray<Item>,
    tooLarge: boolean,
  ): TaskEither<Failure, Tried> =>
  async () => {
    const half = Math.ceil(items.length / 2)
    const first = await settleHalf(items.slice(0, half))()
    if (E.isLeft(first)) return first
    const second = await settleHalf(items.slice(half))()
    if (E.isLeft(second)) return second
    const verdicts = [...first.right.verdicts, ...second.right.verdicts]
    const known = [first.right.most, second.right.most].flatMap((most) => (O.isSome(most) ? [most.value] : []))
    const sized = tooLarge || verdicts.every(({ _tag }) => _tag === 'Accepted')
    const found = sized ? [...known, half] : known
    return E.right({ verdicts, most: found.length === 0 ? O.none : O.some(Math.min(...found)) })
  }

const lost: Final = { _tag: 'Rejected', reason: 'no outcome: the answer does not name it' }

const onceMore =
  <Item>(
    trial: Trial<Item>,
    items: ReadonlyArray<Item>,
    verdicts: ReadonlyArray<Verdict>,
    tries: number,
    suspected: boolean,
  ): TaskEither<Failure, Tried> =>
  async () => {
    const unknown = items.filter((_, index) => isUnknown(verdicts[index]))
    const again =
      unknown.length === 0 || tries === 0
        ? E.right(alike(unknown, lost))
        : await attempt(trial, tries, suspected)(unknown)()
    if (E.isLeft(again)) return again
    const finals = [...again.right.verdicts]
    return E.right({
      verdicts: verdicts.map((verdict) => (isUnknown(verdict) ? (finals.shift() ?? lost) : verdict)),
      most: again.right.most,
    })
  }

const isUnknown = (verdict: Verdict | undefined): verdict is Extract<Verdict, { _tag: 'Unknown' }> =>
  verdict?._tag === 'Unknown'
