import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Api } from '../../connector/api/api'
import type { Failure } from '../../connector/cdk/failure'
import { type Fault, type FaultKind, faultKinds } from '../../connector/sandbox/faults'
import type { Operation } from '../../connector/sandbox/operations'
import type { Sandbox } from '../../connector/sandbox/start'
import { readStruck, remembered, type Struck, settledSandbox } from './struck'

/** What becomes of a run that a fault strikes once, three times, always. */
type Fate = 'completes' | 'fails' | 'either'
type Expected = {
  readonly fates: readonly [once: Fate, thrice: Fate, always: Fate]
  readonly failure?: Failure['_tag']
  readonly says?: RegExp
}

const retried = (says: RegExp): Expected => ({
  fates: ['completes', 'completes', 'fails'],
  failure: 'Transient',
  says,
})
const final = (failure: Failure['_tag'], says: RegExp): Expected => ({
  fates: ['fails', 'fails', 'fails'],
  failure,
  says,
})
/** An answer that makes no sense is asked for three times in all. */
const nonsense = (says: RegExp): Expected => ({ fates: ['completes', 'fails', 'fails'], failure: 'Transient', says })
const harmless: Expected = { fates: ['completes', 'completes', 'completes'] }

const expected: Readonly<Record<FaultKind, Expected>> = {
  '400': final('Config', /refuses the request.*\(400\)/),
  '401': final('Config', /token is missing, wrong or expired.*credentials \(401\)/),
  '403': final('Config', /lacks permission.*\(403\)/),
  '413': final('Transient', /answered 413/),
  '429': retried(/answered 429|asks to wait/),
  '500': retried(/answered 500/),
  '502': retried(/answered 502/),
  '503': retried(/answered 503/),
  '504': retried(/answered 504/),
  reset: retried(/did not answer/),
  truncated: retried(/did not answer/),
  hang: retried(/did not answer \(ETIMEDOUT\)/),
  drip: retried(/did not answer \(ETIMEDOUT\)/),
  cutjson: nonsense(/not what was asked for/),
  html: nonsense(/not what was asked for/),
  application: nonsense(/application error \(code INTERNAL\)/),
  revoke: final('Config', /credentials \(401\)/),
  contenttype: harmless,
  stale: { fates: ['completes', 'either', 'either'], failure: 'Transient', says: /not what was asked for/ },
  duplicate: { fates: ['either', 'either', 'either'], failure: 'Transient', says: /./ },
  clamp: harmless,
  unknown: harmless,
  nulls: harmless,
}

const start = '2010-01-01T00:00:00.000Z'

const faultOf = (kind: FaultKind): Fault => ({
  kind,
  retryAfter: kind === '429' ? 2 : undefined,
  retryAfterDate: false,
  delay: 1000,
  limit: 7,
})

type Family = {
  readonly operation: Operation
  readonly streams: ReadonlyArray<string>
  readonly kinds: ReadonlyArray<FaultKind>
}

const kinds = Object.keys(faultKinds) as ReadonlyArray<FaultKind>

const families: Readonly<Record<string, Family>> = {
  reviews: { operation: 'exportReviews', streams: ['reviews'], kinds },
  deletions: { operation: 'exportDeletedReviews', streams: ['deleted_reviews'], kinds },
  'parts of reviews': {
    operation: 'exportReviews',
    streams: ['review_sentiments', 'locations'],
    // A review whose contents are null has no parts.
    kinds: kinds.filter((kind) => kind !== 'nulls'),
  },
}

/** Keys and times of everything a run, or several, sent: the last version of each. */
const rowsOf = (...runs: ReadonlyArray<Struck>): ReadonlyArray<string> => {
  const rows = new Map<string, string>()
  for (const { records } of runs)
    for (const [stream, sent] of Object.entries(records))
      for (const row of sent) {
        const { id, reviewId, contentId, modifiedTime, reviewModifiedTime } = row
        rows.set(
          [stream, reviewId, contentId, id].join(' '),
          String(modifiedTime ?? (stream === 'locations' ? '' : reviewModifiedTime)),
        )
      }
  return [...rows].map((row) => row.join(' ')).sort()
}

const cursorsOf = ({ messages }: Struck): ReadonlyArray<unknown> =>
  messages.flatMap((message) =>
    message._tag === 'Checkpoint' ? [(message.state as { readonly modifiedTimeFrom: unknown }).modifiedTimeFrom] : [],
  )

const failuresOf = ({ messages }: Struck): ReadonlyArray<Failure> =>
  messages.flatMap((message) => (message._tag === 'Failed' ? [message.failure] : []))

describe.each(Object.entries(families))('%s', (_name, { operation, streams, kinds }) => {
  let held: Sandbox
  let api: Api
  let whole: Struck
  beforeAll(async () => {
    held = await settledSandbox(110, 60)
    api = remembered(held.api)
    whole = await readStruck(api, streams, undefined)
  })
  afterAll(() => held.close())

  it('has more than two pages', () => {
    expect(whole.requests).toBeGreaterThan(3)
    expect(failuresOf(whole)).toEqual([])
    expect(rowsOf(whole).length).toBeGreaterThan(20)
  })

  const fate = async (kind: FaultKind, at: string, from: number, times: number): Promise<string> => {
    const { failure, says } = expected[kind]
    const run = await readStruck(api, streams, { fault: faultOf(kind), operation, from, times })
    const where = `${kind} at the ${at} request, ${times} times`
    expect(run.faults, where).toBeGreaterThan(0)
    const failures = failuresOf(run)
    if (failures.length === 0) {
      expect(rowsOf(run), where).toEqual(rowsOf(whole))
      return 'completes'
    }
    expect(failures.length, where).toBe(streams.length)
    for (const { _tag, message } of failures) {
      expect(_tag, `${where}: ${message}`).toBe(failure)
      expect(message, where).toMatch(says ?? /^$/)
    }
    for (const cursor of cursorsOf(run)) expect(cursor, where).toBe(start)
    const next = await readStruck(api, streams, undefined, run.state)
    expect(failuresOf(next), where).toEqual([])
    expect(rowsOf(run, next), where).toEqual(rowsOf(whole))
    return 'fails'
  }

  it.concurrent.each(kinds)('struck by %s loses nothing', async (kind) => {
    const places = { first: 1, middle: Math.ceil(whole.requests / 2), last: whole.requests }
    const cases = Object.entries(places).flatMap(([at, from]) =>
      [1, 3, 1e9].map(async (times, i) => ({ at, times, i, became: await fate(kind, at, from, times) })),
    )
    for (const { at, times, i, became } of await Promise.all(cases)) {
      const foreseen = expected[kind].fates[i]
      if (foreseen !== 'either') expect(became, `${kind} at the ${at} request, ${times} times`).toBe(foreseen)
    }
  })
})
