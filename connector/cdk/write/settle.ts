import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import type { TaskEither } from 'fp-ts/TaskEither'
import type { Failure } from '../failure'
import type { OpenSink, Verdict } from '../sink'

/** A verdict that stands. */
export type Final = Exclude<Verdict, { _tag: 'Unknown' }>

export type Settled = {
  /** One for each item, in their order. */
  readonly verdicts: ReadonlyArray<Final>
  /** The most items that a batch should have from now on, where that was found out. */
  readonly most: O.Option<number>
}

type Write<Item> = OpenSink<Item>['write']

/**
 * Sends a batch until each of its items has a verdict: one that is refused as a whole is halved until the bad item stands alone;
 * items of which the answer does not tell are sent once more, then rejected.
 */
export const settle = <Item>(write: Write<Item>): ((items: ReadonlyArray<Item>) => TaskEither<Failure, Settled>) =>
  settleFor(write, 2)

const settleFor =
  <Item>(write: Write<Item>, tries: number) =>
  (items: ReadonlyArray<Item>): TaskEither<Failure, Settled> =>
  async () => {
    const answer = await write(items)()
    if (E.isLeft(answer)) return answer
    const said = answer.right
    if (said._tag === 'Verdicts') return onceMore(write, items, said.verdicts, tries - 1)()
    if (items.length <= 1) return E.right(rejected(items, said.reason))
    return halves(settleFor(write, tries), items, said.tooLarge)()
  }

const rejected = (items: ReadonlyArray<unknown>, reason: string): Settled => ({
  verdicts: items.map(() => ({ _tag: 'Rejected', reason })),
  most: O.none,
})

/** Where both halves pass without a bad item, it was the size that was refused. */
const halves =
  <Item>(
    settleHalf: (items: ReadonlyArray<Item>) => TaskEither<Failure, Settled>,
    items: ReadonlyArray<Item>,
    tooLarge: boolean,
  ): TaskEither<Failure, Settled> =>
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

const onceMore =
  <Item>(
    write: Write<Item>,
    items: ReadonlyArray<Item>,
    verdicts: ReadonlyArray<Verdict>,
    tries: number,
  ): TaskEither<Failure, Settled> =>
  async () => {
    const unknown = items.filter((_, index) => isUnknown(verdicts[index]))
    const again =
      unknown.length === 0 || tries === 0
        ? E.right(rejected(unknown, 'no outcome: the answer does not name it'))
        : await settleFor(write, tries)(unknown)()
    if (E.isLeft(again)) return again
    const finals = [...again.right.verdicts]
    return E.right({
      verdicts: verdicts.map((verdict) => (isUnknown(verdict) ? (finals.shift() ?? lost) : verdict)),
      most: again.right.most,
    })
  }

const lost: Final = { _tag: 'Rejected', reason: 'no outcome: the answer does not name it' }

const isUnknown = (verdict: Verdict | undefined): verdict is Extract<Verdict, { _tag: 'Unknown' }> =>
  verdict?._tag === 'Unknown'
