import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import type { TaskEither } from 'fp-ts/TaskEither'
import type { Failure } from '../failure'
import type { BatchAnswer, OpenSink, RecordVerdict } from '../sink'

/** A verdict that stands. */
export type FinalVerdict = Exclude<RecordVerdict, { _tag: 'Unknown' }>

export type DeliveryResult = {
  /** One for each item, in their order. */
  readonly verdicts: ReadonlyArray<FinalVerdict>
  /** The most items that a batch should have from now on, where that was found out. */
  readonly maxItems: O.Option<number>
}

/** An item that the service fails on alone; rejected if the service takes others, else the service is at fault. */
type SuspectVerdict = { readonly _tag: 'Suspect'; readonly reason: string; readonly failure: Failure }

type DeliveryAttempt = {
  readonly verdicts: ReadonlyArray<FinalVerdict | SuspectVerdict>
  readonly maxItems: O.Option<number>
}

/** A batch on its way to its verdicts. */
type DeliveryContext<Item> = Pick<OpenSink<Item>, 'write' | 'isReachable'> & {
  /** How often the service took any item, of whatever batch. */
  readonly acceptedBatches: () => number
  /** The same when this batch had failed as a whole, time and again. */
  acceptedAtFailure: number
  suspectCount: number
}

/** How many items may fail alone with none taken meanwhile: then it is the service that fails. */
const maxSuspects = 8

/**
 * Sends a batch until each of its items has a verdict: one that is refused as a whole, or that the service fails on time and again
 * while it is there, is halved until the bad item stands alone; items of which the answer does not tell are sent once more, then rejected.
 */
export const deliverBatch = <Item>({
  write,
  isReachable,
}: Pick<OpenSink<Item>, 'write' | 'isReachable'>): ((
  items: ReadonlyArray<Item>,
) => TaskEither<Failure, DeliveryResult>) => {
  let taken = 0
  const counted: OpenSink<Item>['write'] = (items, suspected) => async () => {
    const answer = await write(items, suspected)()
    if (E.isRight(answer) && hasAccepted(answer.right)) taken += 1
    return answer
  }
  return (items) => async () => {
    const trial: DeliveryContext<Item> = {
      write: counted,
      isReachable,
      acceptedBatches: () => taken,
      acceptedAtFailure: 0,
      suspectCount: 0,
    }
    const tried = await attemptDelivery(trial, 2, false)(items)()
    return E.isLeft(tried) ? tried : retrySuspects(trial, items, tried.right)()
  }
}

/** Whether the service has taken anything since the batch had failed: then it is there, and it was not before that. */
const acceptsOthers = ({ acceptedBatches, acceptedAtFailure }: DeliveryContext<never>): boolean =>
  acceptedBatches() > acceptedAtFailure

const hasAccepted = (answer: BatchAnswer): boolean =>
  answer._tag === 'Verdicts' && answer.verdicts.some(({ _tag }) => _tag === 'Accepted')

const isSuspect = (verdict: FinalVerdict | SuspectVerdict): verdict is SuspectVerdict => verdict._tag === 'Suspect'

/** Suspects are sent once more now that the service takes others: it may only have been away for a while. */
const retrySuspects =
  <Item>(
    trial: DeliveryContext<Item>,
    items: ReadonlyArray<Item>,
    { verdicts, maxItems }: DeliveryAttempt,
  ): TaskEither<Failure, DeliveryResult> =>
  async () => {
    const finals: Array<FinalVerdict> = []
    for (const [index, verdict] of verdicts.entries()) {
      if (!isSuspect(verdict)) {
        finals.push(verdict)
        continue
      }
      if (!acceptsOthers(trial)) return E.left(verdict.failure)
      const again = await attemptDelivery(trial, 1, true)(items.slice(index, index + 1))()
      if (E.isLeft(again)) return again
      const last = again.right.verdicts[0] ?? missingVerdict
      finals.push(isSuspect(last) ? { _tag: 'Rejected', reason: last.reason } : last)
    }
    return E.right({ verdicts: finals, maxItems })
  }

const attemptDelivery =
  <Item>(trial: DeliveryContext<Item>, tries: number, suspected: boolean) =>
  (items: ReadonlyArray<Item>): TaskEither<Failure, DeliveryAttempt> =>
  async () => {
    const answer = await trial.write(items, suspected)()
    if (E.isLeft(answer)) return answer
    const said = answer.right
    switch (said._tag) {
      case 'Verdicts':
        return resendUnknown(trial, items, said.verdicts, tries - 1, suspected)()
      case 'Refused':
        return items.length <= 1
          ? E.right(repeatVerdict(items, { _tag: 'Rejected', reason: said.reason }))
          : deliverHalves(attemptDelivery(trial, tries, suspected), items, said.tooLarge)()
      case 'Unanswered': {
        const { reason, failure } = said
        if (!suspected) trial.acceptedAtFailure = trial.acceptedBatches()
        if (!suspected && !(await trial.isReachable())) return E.left(failure)
        if (items.length > 1) return deliverHalves(attemptDelivery(trial, tries, true), items, false)()
        trial.suspectCount += 1
        if (trial.suspectCount >= maxSuspects && !acceptsOthers(trial)) return E.left(failure)
        return E.right(repeatVerdict(items, { _tag: 'Suspect', reason, failure }))
      }
    }
  }

const repeatVerdict = (items: ReadonlyArray<unknown>, verdict: FinalVerdict | SuspectVerdict): DeliveryAttempt => ({
  verdicts: items.map(() => verdict),
  maxItems: O.none,
})

/** Where both halves pass without a bad item, it was the size that was refused. */
const deliverHalves =
  <Item>(
    settleHalf: (items: ReadonlyArray<Item>) => TaskEither<Failure, DeliveryAttempt>,
    items: ReadonlyArray<Item>,
    tooLarge: boolean,
  ): TaskEither<Failure, DeliveryAttempt> =>
  async () => {
    const half = Math.ceil(items.length / 2)
    const first = await settleHalf(items.slice(0, half))()
    if (E.isLeft(first)) return first
    const second = await settleHalf(items.slice(half))()
    if (E.isLeft(second)) return second
    const verdicts = [...first.right.verdicts, ...second.right.verdicts]
    const known = [first.right.maxItems, second.right.maxItems].flatMap((most) => (O.isSome(most) ? [most.value] : []))
    const sized = tooLarge || verdicts.every(({ _tag }) => _tag === 'Accepted')
    const found = sized ? [...known, half] : known
    return E.right({ verdicts, maxItems: found.length === 0 ? O.none : O.some(Math.min(...found)) })
  }

const missingVerdict: FinalVerdict = { _tag: 'Rejected', reason: 'no outcome: the answer does not name it' }

const resendUnknown =
  <Item>(
    trial: DeliveryContext<Item>,
    items: ReadonlyArray<Item>,
    verdicts: ReadonlyArray<RecordVerdict>,
    tries: number,
    suspected: boolean,
  ): TaskEither<Failure, DeliveryAttempt> =>
  async () => {
    const unknown = items.filter((_, index) => isUnknown(verdicts[index]))
    const again =
      unknown.length === 0 || tries === 0
        ? E.right(repeatVerdict(unknown, missingVerdict))
        : await attemptDelivery(trial, tries, suspected)(unknown)()
    if (E.isLeft(again)) return again
    const finals = [...again.right.verdicts]
    return E.right({
      verdicts: verdicts.map((verdict) => (isUnknown(verdict) ? (finals.shift() ?? missingVerdict) : verdict)),
      maxItems: again.right.maxItems,
    })
  }

const isUnknown = (verdict: RecordVerdict | undefined): verdict is Extract<RecordVerdict, { _tag: 'Unknown' }> =>
  verdict?._tag === 'Unknown'
