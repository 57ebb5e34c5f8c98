import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Failure } from '../../connector/cdk/failure'
import type { FaultKind } from '../../connector/sandbox/faults/plan'
import {
  commonFaults,
  type Expected,
  type ExpectedFate,
  type FaultCase,
  failsFinally,
  faultCasesOf,
  faultCounts,
  faultOf,
  firstFaultyRequest,
  kinds,
  mayFail,
} from '../support/fault-matrix'
import { lookupSettings } from '../support/sandbox'
import { cacheApi, type FaultyRead, type FaultyRun, quietSandbox, readWithFault } from '../support/source-faults'

/** A response that cannot be decoded is requested three times in all. */
const undecodable = (says: RegExp): Expected => ({ fates: ['completes', 'fails', 'fails'], failure: 'Transient', says })

const expected: Readonly<Record<FaultKind, Expected>> = {
  ...commonFaults,
  '400': failsFinally('Config', /refuses the request.*\(400\)/),
  '413': failsFinally('Transient', /answered 413/),
  cutjson: undecodable(/not what was asked for/),
  html: undecodable(/not what was asked for/),
  application: undecodable(/application error \(code INTERNAL\)/),
  stale: { fates: ['completes', 'either', 'either'], failure: 'Transient', says: /not what was asked for/ },
  duplicate: mayFail('Transient', /./),
}

const start = '2010-01-01T00:00:00.000Z'

type Family = Pick<FaultyRead, 'operation' | 'streams' | 'config'> & {
  readonly kinds?: ReadonlyArray<FaultKind>
  /** What differs for this family. */
  readonly expected?: Partial<Record<FaultKind, Expected>>
  /** The cursor in every state: no state may claim rows that were not read. */
  readonly cursor?: string
}

const named = (
  person_ids: ReadonlyArray<string>,
  location_ids: ReadonlyArray<string>,
  entity_ids: ReadonlyArray<string>,
) => ({
  entities: { person_ids, location_ids, entity_ids },
  feedback_filters: { per_page: 12, days: 3650 },
})
const few = named(['500001'], ['1002'], ['10'])
const many = named(['500001', '500002'], ['1001', '1002', '1003', '1004'], ['10', '11'])

/** An application error may concern one entity: it is skipped with a log line if other entities are answered. */
const ofOne: Expected = {
  fates: ['completes', 'either', 'either'],
  failure: 'Transient',
  says: /application error \(code INTERNAL\)/,
}
/** A service may answer 403 for a closed location: it is skipped in the same way, if other entities are answered. */
const forbidden = mayFail('Config', /lacks permission.*\(403\)/)
/** A refused request that only asks if there is more counts as a no. */
const ofEntities = {
  application: ofOne,
  '403': forbidden,
  '400': mayFail('Config', /refuses the request.*\(400\)/),
}
/** A failed request for many entities is repeated for each of them, by another operation. */
const ofMany = {
  application: mayFail('Transient', /application error/),
  '403': forbidden,
  '413': { fates: ['completes', 'completes', 'completes'] },
} as const

/** A refused offset may mean that there is no row at it, so the pass checks that its pages still overlap. */
const ofPages = {
  '400': mayFail('Config', /refuses the request.*\(400\)/),
  '403': mayFail('Config', /lacks permission.*\(403\)/),
  '413': mayFail('Transient', /answered 413/),
  '500': mayFail('Transient', /answered 500|\(500\)/),
  application: mayFail('Transient', /application error \(code INTERNAL\)/),
}

const families: Readonly<Record<string, Family>> = {
  reviews: { operation: 'exportReviews', streams: ['reviews'], cursor: start, expected: ofPages },
  deletions: { operation: 'exportDeletedReviews', streams: ['deleted_reviews'], cursor: start, expected: ofPages },
  'children of reviews': {
    operation: 'exportReviews',
    streams: ['review_sentiments', 'locations'],
    cursor: start,
    expected: ofPages,
    // A review whose contents are null has no parts.
    kinds: kinds.filter((kind) => kind !== 'nulls'),
  },
  'comments on one': {
    operation: 'retrieveComments',
    streams: ['comments'],
    config: few,
    expected: ofEntities,
  },
  'comments on many': {
    operation: 'retrieveCommentsByForm',
    streams: ['comments'],
    config: many,
    expected: ofMany,
  },
  'comments on entities found in reviews': {
    operation: 'exportReviews',
    streams: ['comments'],
    config: { ...named([], [], []), entities: { from_reviews: { locations: true } } },
    expected: ofPages,
    // A review without its location names no entity.
    kinds: kinds.filter((kind) => kind !== 'nulls'),
  },
  'transparency reviews': {
    operation: 'retrieveReviews',
    streams: ['transparency_reviews'],
    config: many,
    expected: ofEntities,
  },
  'ratings of one': { operation: 'retrieveComments', streams: ['entity_ratings'], config: few, expected: ofEntities },
  'ratings of many': {
    operation: 'retrieveCommentsByForm',
    streams: ['entity_ratings'],
    config: named(['500001', '500002', '500003'], ['1001', '1002', '1003'], ['10', '11']),
    expected: ofMany,
  },
  'a lookup': {
    operation: 'lookupSources',
    streams: ['sources'],
    config: { lookups: { sources: lookupSettings.sources } },
  },
}

/** Key and time of each row that these runs sent, in its last version. */
const rowsOf = (...runs: ReadonlyArray<FaultyRun>): ReadonlyArray<string> => {
  const rows = new Map<string, string>()
  for (const { records } of runs)
    for (const [stream, sent] of Object.entries(records))
      for (const row of sent) {
        const { id, documentId, reviewId, contentId, entityType, entityId, modifiedTime, reviewModifiedTime } = row
        rows.set(
          [stream, entityType, entityId, reviewId, contentId, id, documentId].join(' '),
          String(modifiedTime ?? (stream === 'locations' ? '' : reviewModifiedTime)),
        )
      }
  return [...rows].map((row) => row.join(' ')).sort()
}

const cursorsOf = ({ messages }: FaultyRun): ReadonlyArray<unknown> =>
  messages.flatMap((message) =>
    message._tag === 'Checkpoint' ? [(message.state as { readonly modifiedTimeFrom: unknown }).modifiedTimeFrom] : [],
  )

const failuresOf = ({ messages }: FaultyRun): ReadonlyArray<Failure> =>
  messages.flatMap((message) => (message._tag === 'Failed' ? [message.failure] : []))

const shared = quietSandbox(110, 60).then((held) => ({ ...held, api: cacheApi(held.api) }))
afterAll(async () => (await shared).close())

describe.each(Object.entries(families))('%s', (name, family) => {
  const { operation, streams, config = {}, cursor } = family
  const number = Object.keys(families).indexOf(name)
  let reading: FaultyRead
  let whole: FaultyRun
  beforeAll(async () => {
    const { api, now } = await shared
    reading = { api, now, operation, streams, config }
    whole = await readWithFault(reading)
  })

  it('is read completely without a fault', () => {
    expect(whole.requests).toBeGreaterThan(operation === 'lookupSources' ? 0 : 2)
    expect(failuresOf(whole)).toEqual([])
    expect(rowsOf(whole).length).toBeGreaterThan(2)
    if (cursor !== undefined) expect(cursorsOf(whole).length).toBeGreaterThan(0)
  })

  const runWithFault = async (kind: FaultKind, { at, countIndex: n }: FaultCase): Promise<ExpectedFate> => {
    const { failure, says } = family.expected?.[kind] ?? expected[kind]
    const from = firstFaultyRequest(at, whole.requests)
    const run = await readWithFault(reading, { fault: faultOf(kind), from, times: faultCounts[n] })
    const where = `${kind} at the ${at} request, ${faultCounts[n]} times`
    expect(run.faults, where).toBeGreaterThan(0)
    const failures = failuresOf(run)
    const complete = JSON.stringify(rowsOf(run)) === JSON.stringify(rowsOf(whole))
    if (failures.length === 0 && complete) return 'completes'
    if (failures.length === 0) expect(run.logs.join(' '), where).toMatch(/the service refuses|asked for again/)
    else expect(failures.length, where).toBe(streams.length)
    for (const { _tag, message } of failures) {
      expect(_tag, `${where}: ${message}`).toBe(failure)
      expect(message, where).toMatch(says ?? /^$/)
    }
    if (cursor !== undefined) for (const at of cursorsOf(run)) expect(at, where).toBe(cursor)
    const next = await readWithFault(reading, undefined, run.state)
    expect(failuresOf(next), where).toEqual([])
    expect(rowsOf(run, next), where).toEqual(rowsOf(whole))
    return failures.length === 0 ? 'passes over' : 'fails'
  }

  it.concurrent.each(faultCasesOf(number, family.kinds))('loses nothing by the fault %s', async (kind, cases) => {
    const { fates } = family.expected?.[kind] ?? expected[kind]
    const results = await Promise.all(cases.map(async (one) => ({ ...one, fate: await runWithFault(kind, one) })))
    for (const { at, countIndex: n, fate } of results)
      if (fates[n] !== 'either') expect(fate, `${kind} at the ${at} request, ${faultCounts[n]} times`).toBe(fates[n])
  })
})
