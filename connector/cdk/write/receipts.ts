import type { Arrival, Stats } from './arrival'

/** A record on its way; `outcome` is set once it is known. */
export type Receipt = { readonly inlet: string; readonly bytes: number; outcome?: 'accepted' | 'rejected' }

type State = Extract<Arrival, { _tag: 'State' }>

/** Records and states in the order they came in. */
export type Receipts = {
  readonly record: (inlet: string, bytes: number) => Receipt
  readonly state: (state: State) => void
  /** The lines of the states before which nothing is open any more, each once. */
  readonly due: () => ReadonlyArray<string>
  /** What is not acknowledged yet: how many, and how long their records are together. */
  readonly open: () => { readonly count: number; readonly bytes: number }
}

const none: Stats = { accepted: 0, rejected: 0 }

/** Answers states in order, each once every record before it has an outcome, with the counts since the state before it. */
export const receipts = (): Receipts => {
  let entries: Array<Receipt | State> = []
  let head = 0
  let bytes = 0
  const counts = new Map<string, { accepted: number; rejected: number }>()

  const count = ({ inlet, outcome }: Receipt): void => {
    const counted = counts.get(inlet) ?? { ...none }
    counted[outcome ?? 'rejected'] += 1
    counts.set(inlet, counted)
  }
  const taken = (inlets: ReadonlyArray<string>): Stats => {
    const sum = inlets
      .map((inlet) => counts.get(inlet) ?? none)
      .reduce((a, b) => ({ accepted: a.accepted + b.accepted, rejected: a.rejected + b.rejected }), none)
    for (const inlet of inlets) counts.delete(inlet)
    return sum
  }
  const due = (): ReadonlyArray<string> => {
    const lines: Array<string> = []
    for (let entry = entries[head]; entry !== undefined; entry = entries[++head])
      if ('answer' in entry)
        lines.push(entry.answer(taken(entry.inlet === undefined ? [...counts.keys()] : [entry.inlet])))
      else if (entry.outcome === undefined) break
      else {
        count(entry)
        bytes -= entry.bytes
      }
    if (head > 1024 && head * 2 > entries.length) {
      entries = entries.slice(head)
      head = 0
    }
    return lines
  }

  return {
    record: (inlet, length) => {
      const receipt: Receipt = { inlet, bytes: length }
      entries.push(receipt)
      bytes += length
      return receipt
    },
    state: (state) => {
      entries.push(state)
    },
    due,
    open: () => ({ count: entries.length - head, bytes }),
  }
}
