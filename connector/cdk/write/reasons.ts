import type { DeadLetter, DeadLetters } from './dead-letters'

/** The maximum numbers of reasons listed and counted, because the service's wording may differ for every record. */
const maxListed = 10
const maxCounted = 1000

/** Counts why records were rejected, before they reach the dead letters. */
type ReasonCounter = {
  readonly deadLetters: DeadLetters
  /** A sentence for each stream with rejections, with the most frequent reasons first. */
  readonly summaries: () => ReadonlyArray<string>
}

/** Counts the reasons of the letters that go to `deadLetters`. */
export const countReasons = (deadLetters: DeadLetters): ReasonCounter => {
  const byStream = new Map<string, { rejected: number; readonly reasons: Map<string, number> }>()
  const count = ({ stream, reason }: DeadLetter): void => {
    const counted = byStream.get(stream) ?? { rejected: 0, reasons: new Map() }
    byStream.set(stream, counted)
    counted.rejected += 1
    const before = counted.reasons.get(reason)
    if (before !== undefined || counted.reasons.size < maxCounted) counted.reasons.set(reason, (before ?? 0) + 1)
  }
  return {
    deadLetters: {
      add: (letter) => {
        count(letter)
        deadLetters.add(letter)
      },
      flush: deadLetters.flush,
    },
    summaries: () =>
      [...byStream].map(([stream, { rejected, reasons }]) => {
        const listed = [...reasons].sort(([, a], [, b]) => b - a).slice(0, maxListed)
        const others = listed.reduce((left, [, records]) => left - records, rejected)
        const list = listed.map(([reason, records]) => `${reason} (${records})`).join('; ')
        return `${stream}: ${rejected} rejected: ${list}${others === 0 ? '' : `; and ${others} others`}.`
      }),
  }
}
