import type { DestinationStats, InputMessage } from './arrival'

/** A record on its way; `outcome` is set once it is known. */
export type PendingRecord = { readonly inlet: string; readonly bytes: number; outcome?: 'accepted' | 'rejected' }

type PendingState = Extract<InputMessage, { _tag: 'State' }>

/** Records and states in the order they came in. */
export type AckQueue = {
  readonly addRecord: (inlet: string, bytes: number) => PendingRecord
  readonly addState: (state: PendingState) => void
  /** The lines of the states before which nothing is open any more, each once. */
  readonly takeDueLines: () => ReadonlyArray<string>
  /** What is not acknowledged yet: how many, and how long their records are together. */
  readonly pendingSize: () => { readonly count: number; readonly bytes: number }
}

const zeroStats: DestinationStats = { accepted: 0, rejected: 0 }

/** Answers states in order, each once every record before it has an outcome, with the counts since the state before it. */
export const createAckQueue = (): AckQueue => {
  let entries: Array<PendingRecord | PendingState> = []
  let head = 0
  let bytes = 0
  const counts = new Map<string, { accepted: number; rejected: number }>()

  const count = ({ inlet, outcome }: PendingRecord): void => {
    const counted = counts.get(inlet) ?? { ...zeroStats }
    counted[outcome ?? 'rejected'] += 1
    counts.set(inlet, counted)
  }
  const taken = (inlets: ReadonlyArray<string>): DestinationStats => {
    const sum = inlets
      .map((inlet) => counts.get(inlet) ?? zeroStats)
      .reduce((a, b) => ({ accepted: a.accepted + b.accepted, rejected: a.rejected + b.rejected }), zeroStats)
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
    addRecord: (inlet, length) => {
      const receipt: PendingRecord = { inlet, bytes: length }
      entries.push(receipt)
      bytes += length
      return receipt
    },
    addState: (state) => {
      entries.push(state)
    },
    takeDueLines: due,
    pendingSize: () => ({ count: entries.length - head, bytes }),
  }
}
