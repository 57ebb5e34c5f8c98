import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import type { TaskEither } from 'fp-ts/TaskEither'
import type { Failure } from '../failure'
import type { BatchAnswer, OpenSink, RecordVerdict } from '../sink'

/** A verdict that no longer changes. */
export type FinalVerdict = Exclude<RecordVerdict, { _tag: 'Unknown' }>

type DeliveryResult = {
  /** One for each item, in order. */
  readonly verdicts: ReadonlyArray<FinalVerdict>
  /** The maximum number of items per batch from now on, if the delivery found one. */
  readonly maxItems: O.Option<number>
}

/**
 * An item on which the service fails even when it is sent alone. It is rejected if the service accepts other items. If
 * not, the service is at fault.
 */
type SuspectVerdict = { readonly _tag: 'Suspect'; readonly reason: string; readonly failure: Failure }

type DeliveryAttempt = {
  readonly verdicts: ReadonlyArray<FinalVerdict | SuspectVerdict>
  readonly maxItems: O.Option<number>
}

/** What all attempts of one batch share. */
type DeliveryContext<Item> = Pick<OpenSink<Item>, 'write' | 'isReachable'> & {
  /** The number of answers so far that accepted an item, of this batch or of others. */
  readonly acceptCount: () => number
  /** The value of `acceptCount` when the service last failed on the whole batch. */
  acceptCountAtFailure: number
  suspectCount: number
}

/** This many suspects, while the service accepts nothing, mean that the service is failing rather than its items. */
const maxSuspects = 8

/**
 * Sends a batch until each of its items has a verdict. If the service rejects the batch as a whole, or fails on it
 * repeatedly while reachable, the batch is halved until the bad item is alone. Items that the answer does not mention
 * are sent once more, then rejected.
 */
export const deliverBatch = <Item>({
  write,
  isReachable,
}: Pick<OpenSink<Item>, 'write' | 'isReachable'>): ((
  items: ReadonlyArray<Item>,
) => TaskEither<Failure, DeliveryResult>) => {
  let acceptCount = 0
  const writeAndCount: OpenSink<Item>['write'] = (items, isSuspect) => async () => {
    const answer = await write(items, isSuspect)()
    if (E.isRight(answer) && acceptsAny(answer.right)) acceptCount += 1
    return answer
  }
  return (items) => async () => {
    const context: DeliveryContext<Item> = {
      write: writeAndCount,
      isReachable,
      acceptCount: () => acceptCount,
      acceptCountAtFailure: 0,
      suspectCount: 0,
    }
    const attempt = await attemptDelivery(context, 2, false)(items)()
    return E.isLeft(attempt) ? attempt : resendSuspects(context, items, attempt.right)()
  }
}

/**
 * True if the service has accepted anything since it failed on the batch. Earlier acceptance does not count, because
 * the service may have become unreachable since.
 */
const acceptsOthers = ({ acceptCount, acceptCountAtFailure }: DeliveryContext<never>): boolean =>
  acceptCount() > acceptCountAtFailure

const acceptsAny = (answer: BatchAnswer): boolean =>
  answer._tag === 'Verdicts' && answer.verdicts.some(({ _tag }) => _tag === 'Accepted')

const isSuspectVerdict = (verdict: FinalVerdict | SuspectVerdict): verdict is SuspectVerdict =>
  verdict._tag === 'Suspect'

/** Sends suspects once more when the service accepts other items, since it may have failed on them during an outage. */
const resendSuspects =
  <Item>(
    context: DeliveryContext<Item>,
    items: ReadonlyArray<Item>,
    { verdicts, maxItems }: DeliveryAttempt,
  ): TaskEither<Failure, DeliveryResult> =>
  async () => {
    const finalVerdicts: Array<FinalVerdict> = []
    for (const [index, verdict] of verdicts.entries()) {
      if (!isSuspectVerdict(verdict)) {
        finalVerdicts.push(verdict)
        continue
      }
      if (!acceptsOthers(context)) return E.left(verdict.failure)
      const attempt = await attemptDelivery(context, 1, true)(items.slice(index, index + 1))()
      if (E.isLeft(attempt)) return attempt
      const last = attempt.right.verdicts[0] ?? missingVerdict
      finalVerdicts.push(isSuspectVerdict(last) ? { _tag: 'Rejected', reason: last.reason } : last)
    }
    return E.right({ verdicts: finalVerdicts, maxItems })
  }

/**
 * `attempts`: how often an item may be sent while its verdict stays unknown; `isSuspect`: the service failed on a batch
 * with these items.
 */
const attemptDelivery =
  <Item>(context: DeliveryContext<Item>, attempts: number, isSuspect: boolean) =>
  (items: ReadonlyArray<Item>): TaskEither<Failure, DeliveryAttempt> =>
  async () => {
    const answer = await context.write(items, isSuspect)()
    if (E.isLeft(answer)) return answer
    switch (answer.right._tag) {
      case 'Verdicts':
        return resendUnknown(context, items, answer.right.verdicts, attempts - 1, isSuspect)()
      case 'Refused': {
        const { reason, tooLarge } = answer.right
        return items.length <= 1
          ? E.right(repeatVerdict(items, { _tag: 'Rejected', reason }))
          : deliverHalves(attemptDelivery(context, attempts, isSuspect), items, tooLarge)()
      }
      case 'Unanswered': {
        const { reason, failure } = answer.right
        if (!isSuspect) context.acceptCountAtFailure = context.acceptCount()
        if (!isSuspect && !(await context.isReachable())) return E.left(failure)
        if (items.length > 1) return deliverHalves(attemptDelivery(context, attempts, true), items, false)()
        context.suspectCount += 1
        if (context.suspectCount >= maxSuspects && !acceptsOthers(context)) return E.left(failure)
        return E.right(repeatVerdict(items, { _tag: 'Suspect', reason, failure }))
      }
    }
  }

const repeatVerdict = (items: ReadonlyArray<unknown>, verdict: FinalVerdict | SuspectVerdict): DeliveryAttempt => ({
  verdicts: items.map(() => verdict),
  maxItems: O.none,
})

/** Delivers a batch in halves. If every item of both is accepted, the batch was only too large. */
const deliverHalves =
  <Item>(
    deliverHalf: (items: ReadonlyArray<Item>) => TaskEither<Failure, DeliveryAttempt>,
    items: ReadonlyArray<Item>,
    tooLarge: boolean,
  ): TaskEither<Failure, DeliveryAttempt> =>
  async () => {
    const half = Math.ceil(items.length / 2)
    const first = await deliverHalf(items.slice(0, half))()
    if (E.isLeft(first)) return first
    const second = await deliverHalf(items.slice(half))()
    if (E.isLeft(second)) return second
    const verdicts = [...first.right.verdicts, ...second.right.verdicts]
    const limits = [first.right.maxItems, second.right.maxItems].flatMap((max) => (O.isSome(max) ? [max.value] : []))
    if (tooLarge || verdicts.every(({ _tag }) => _tag === 'Accepted')) limits.push(half)
    return E.right({ verdicts, maxItems: limits.length === 0 ? O.none : O.some(Math.min(...limits)) })
  }

const missingVerdict: FinalVerdict = { _tag: 'Rejected', reason: 'no outcome: the answer does not name it' }

/** Resends the items without a verdict, if any attempt is left, and inserts their verdicts. */
const resendUnknown =
  <Item>(
    context: DeliveryContext<Item>,
    items: ReadonlyArray<Item>,
    verdicts: ReadonlyArray<RecordVerdict>,
    attemptsLeft: number,
    isSuspect: boolean,
  ): TaskEither<Failure, DeliveryAttempt> =>
  async () => {
    const unknown = items.filter((_, index) => isUnknown(verdicts[index]))
    const attempt =
      unknown.length === 0 || attemptsLeft === 0
        ? E.right(repeatVerdict(unknown, missingVerdict))
        : await attemptDelivery(context, attemptsLeft, isSuspect)(unknown)()
    if (E.isLeft(attempt)) return attempt
    const found = [...attempt.right.verdicts]
    return E.right({
      verdicts: verdicts.map((verdict) => (isUnknown(verdict) ? (found.shift() ?? missingVerdict) : verdict)),
      maxItems: attempt.right.maxItems,
    })
  }

const isUnknown = (verdict: RecordVerdict | undefined): verdict is Extract<RecordVerdict, { _tag: 'Unknown' }> =>
  verdict?._tag === 'Unknown'
