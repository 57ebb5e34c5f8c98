import type { RunOutput } from './consumer'
import type { ProcessEnd } from './process'
import type { Truth } from './service'

/** A promise that was broken, and how. */
export type Violation = { readonly oracle: string; readonly what: string }

/** A configured rate is kept by each process: at most `perMinute` requests leave in any 60 s. */
export const checkRate = (times: ReadonlyArray<number>, perMinute: number): string | undefined => {
  for (let i = perMinute; i < times.length; i += 1) {
    const [first, last] = [times[i - perMinute] ?? 0, times[i] ?? 0]
    if (last - first < 60_000)
      return `${perMinute + 1} requests left between ${first.toFixed(0)} and ${last.toFixed(0)} ms`
  }
  return undefined
}

/** After a quiet run the rows equal the service: nothing lost, nothing stale, nothing beyond. */
export const compareRows = (
  truth: Truth,
  reviews: ReadonlyMap<string, { readonly modified: number; readonly isDeleted: boolean }>,
  deleted: ReadonlySet<string>,
): ReadonlyArray<Violation> => {
  const violations: Violation[] = []
  const alive = new Map(truth.reviews)
  const gone = new Set(truth.deleted.map((deletion) => deletion.split(' ')[0]))
  for (const [id, modified] of alive) {
    const held = reviews.get(id)
    if (held === undefined) violations.push({ oracle: 'nothing lost', what: `review ${id} of ${modified}` })
    else if (held.modified !== modified || held.isDeleted)
      violations.push({
        oracle: 'nothing stale',
        what: `review ${id} of ${modified}; held ${held.isDeleted ? 'deleted ' : ''}of ${held.modified}`,
      })
  }
  for (const [id] of reviews)
    if (!alive.has(id) && !gone.has(id)) violations.push({ oracle: 'nothing beyond', what: `review ${id}` })
  for (const deletion of truth.deleted) {
    const [id] = deletion.split(' ')
    const isHeld = deleted.has(deletion) || [...deleted].some((each) => each.startsWith(`${id} `) && each >= deletion)
    if (!isHeld) violations.push({ oracle: 'nothing lost', what: `deletion ${deletion}` })
  }
  return violations
}

/** Neither a secret nor a patient's word is in what a run prints beside records. */
export const checkLeaks = (
  talk: string,
  secrets: ReadonlyArray<string>,
  words: ReadonlyArray<string>,
): ReadonlyArray<Violation> => [
  ...secrets.filter((text) => talk.includes(text)).map(() => ({ oracle: 'no secret', what: 'a secret was printed' })),
  ...words.filter((text) => talk.includes(text)).map((what) => ({ oracle: 'no patient', what })),
]

/** A run ends as it is documented, and never through an error of its own. */
export const checkEnd = (
  end: ProcessEnd,
  output: RunOutput,
  stderr: string,
  wanted: {
    readonly protocol: 'airbyte' | 'singer'
    readonly signals: ReadonlyArray<string>
    readonly mustComplete: boolean
  },
): ReadonlyArray<Violation> => {
  const how = 'signal' in end ? end.signal : `status ${end.status}`
  const text = `${how}; ${[...output.talk, stderr].join('\n').slice(-1500)}`
  const violation = { oracle: 'end of a run', what: text }
  if (stderr.includes('unexpected error') || output.failureTypes.includes('system_error')) return [violation]
  if ('signal' in end) return wanted.signals.includes(end.signal) ? [] : [violation]
  if (end.status === 0) {
    const incomplete = Object.values(output.statuses).filter((status) => status !== 'COMPLETE')
    return incomplete.length === 0 ? [] : [violation]
  }
  if (wanted.mustComplete) return [violation]
  const stopStatus = [...wanted.signals].map((signal) => ({ SIGTERM: 143, SIGINT: 130 })[signal])
  return end.status === 1 || stopStatus.includes(end.status) ? [] : [violation]
}
