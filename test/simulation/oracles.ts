import type { RunOutput } from './consumer'
import type { ProcessEnd } from './process'
import type { Truth } from './rows'
import type { ServiceTraits } from './service'

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

/**
 * A run that has ended well has all that rested when it began: what was written up to this time by the clock that
 * stamps rows. Its cutoff is 5 s before the `Date` of its first answer, 5 minutes before the local time without one,
 * and an answer may take some minutes.
 */
export const restedUntil = ({ clockSkew }: ServiceTraits, wall: number, localOffset: number): number =>
  wall - 600_000 + Math.min(0, clockSkew ?? localOffset)

/** The rows equal what the service has shown: nothing is lost, nothing is stale. */
export const compareRows = (
  truth: Truth,
  reviews: ReadonlyMap<string, { readonly modified: number; readonly isDeleted: boolean }>,
  deleted: ReadonlySet<string>,
): ReadonlyArray<Violation> => {
  const violations: Violation[] = []
  for (const [id, modified] of truth.reviews) {
    const held = reviews.get(id)
    if (held === undefined) violations.push({ oracle: 'nothing lost', what: `review ${id} of ${modified}` })
    else if (held.modified !== modified || held.isDeleted)
      violations.push({
        oracle: 'nothing stale',
        what: `review ${id} of ${modified}; held ${held.isDeleted ? 'deleted ' : ''}of ${held.modified}`,
      })
  }
  for (const deletion of truth.deleted) {
    const [id] = deletion.split(' ')
    const isHeld = deleted.has(deletion) || [...deleted].some((each) => each.startsWith(`${id} `) && each >= deletion)
    if (!isHeld) violations.push({ oracle: 'nothing lost', what: `deletion ${deletion}` })
  }
  return violations
}

/** A run sends nothing where the run before has read all there is, up to this time. */
export const checkRepeats = (
  { reviews, deleted }: Truth,
  readUntil: number,
  records: number,
): ReadonlyArray<Violation> => {
  const times = [
    ...reviews.map(([, modified]) => modified),
    ...deleted.map((deletion) => Number(deletion.split(' ')[1])),
  ]
  return records > 0 && times.every((modified) => modified <= readUntil)
    ? [{ oracle: 'nothing again', what: `${records} records` }]
    : []
}

/** No review is held that the service never had. */
export const findSurplus = (truth: Truth, reviews: ReadonlyMap<string, unknown>): ReadonlyArray<Violation> => {
  const known = new Set([
    ...truth.reviews.map(([id]) => id),
    ...truth.deleted.map((deletion) => deletion.split(' ')[0]),
  ])
  return [...reviews.keys()]
    .filter((id) => !known.has(id))
    .map((id) => ({ oracle: 'nothing beyond', what: `review ${id}` }))
}

/**
 * A read of unchanging rows requests a bounded number of pages, even if their order is random and some answers fail.
 */
export const checkRequests = ({ clamp }: ServiceTraits, requests: number): ReadonlyArray<Violation> => {
  const most = 2 * 130 * (Math.ceil(400 / Math.min(clamp, 10)) + 5)
  return requests > most ? [{ oracle: 'few requests', what: `${requests}, where ${most} are many` }] : []
}

/** Follows the tokens that a process is given: none is used once it has expired. */
export const createTokenWatch = () => {
  const ends = new Map<string, number>()
  return {
    /** An answer, whole, has arrived. */
    takeAnswer: (bytes: Buffer, now: number): void => {
      const issued = /"accessToken":"([^"]+)","expiresIn":(\d+)/.exec(bytes.toString('latin1'))
      if (issued !== null) ends.set(String(issued[1]), now + Number(issued[2]) * 1000)
    },
    checkRequest: (head: string, now: number): string | undefined => {
      const end = ends.get(/\r\naccessToken: ([^\r]+)/i.exec(head)?.[1] ?? '')
      return end !== undefined && now > end ? `it expired ${(now - end).toFixed(0)} ms ago` : undefined
    },
  }
}

/** Besides records, a run prints neither a secret nor a patient's words. */
export const checkLeaks = (
  talk: string,
  secrets: ReadonlyArray<string>,
  words: ReadonlyArray<string>,
): ReadonlyArray<Violation> => [
  ...secrets.filter((text) => talk.includes(text)).map(() => ({ oracle: 'no secret', what: 'a secret was printed' })),
  ...words.filter((text) => talk.includes(text)).map((what) => ({ oracle: 'no patient', what })),
]

/** A run says that the service no longer shows rows that were read. */
export const hasLostRows = (talk: string): boolean =>
  talk.includes('the list ends before rows that the service has shown, in')

/** What a run says of its failures: Airbyte's error traces, and the errors that a tap logs. */
export const findFailures = (talk: ReadonlyArray<string>, stderr: string): ReadonlyArray<string> => [
  ...new Set([
    ...talk.flatMap((line) => /"type":"ERROR".*?"message":"([^"]*)"/.exec(line)?.[1] ?? []),
    ...stderr.split('\n').flatMap((line) => /^(?:ERROR|CRITICAL)\b:? ?(.*)/.exec(line)?.[1] ?? []),
  ]),
]

/** A run ends as documented, and never with an internal error. */
export const checkEnd = (
  end: ProcessEnd,
  output: RunOutput,
  stderr: string,
  wanted: {
    readonly protocol: 'airbyte' | 'singer' | 'text'
    readonly signals: ReadonlyArray<string>
    readonly mustComplete: boolean
    /**
     * The previous run was stopped. This one may find that its rows are gone, and leave it to the next one to start
     * over.
     */
    readonly goesOn: boolean
  },
): ReadonlyArray<Violation> => {
  const how = 'signal' in end ? end.signal : `status ${end.status}`
  const talk = [...output.talk, stderr].join('\n').split('\n')
  const text = `${how}; ${talk
    .filter((line) => !line.includes('METRIC'))
    .join('\n')
    .slice(-1500)}`
  const violation = { oracle: 'end of a run', what: text }
  if (stderr.includes('unexpected error') || output.failureTypes.includes('system_error')) return [violation]
  if ('signal' in end) return wanted.signals.includes(end.signal) ? [] : [violation]
  if (end.status === 0) {
    const incomplete = Object.values(output.statuses).filter((status) => status !== 'COMPLETE')
    return incomplete.length === 0 ? [] : [violation]
  }
  if (wanted.mustComplete && !(wanted.goesOn && hasLostRows(talk.join('\n')))) return [violation]
  const stopStatus = [...wanted.signals].map((signal) => ({ SIGTERM: 143, SIGINT: 130 })[signal])
  // A verb for people says what helps: to run it again, or to change something first. It cannot where its reader is
  // gone.
  const failures = wanted.protocol !== 'text' ? [1] : wanted.signals.includes('EPIPE') ? [1, 75, 78] : [75, 78]
  return failures.includes(end.status) || stopStatus.includes(end.status) ? [] : [violation]
}
