import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { FaultKind } from '../../connector/sandbox/faults/plan'
import { type Sandbox, startSandbox } from '../../connector/sandbox/start'
import { type FaultyWrite, writeWithFault } from '../support/destination-faults'
import {
  airbyteFormat,
  configuredCatalogOf,
  formatLines,
  formatStream,
  locationRow,
  mapping,
  visitRow,
} from '../support/destination-input'
import {
  type Cell,
  cellsOf,
  type Expected,
  type ExpectedFate,
  failsFinally,
  faultCounts,
  faultOf,
  harmlessFault,
  mayFail,
  placeOf,
  retried,
  seed,
} from '../support/fault-matrix'

const count = 60
const every = 5

/** A batch that is refused is halved, down to the record that is to blame; where all are, that is told. */
const refused = (status: number): Expected => ({
  fates: ['completes', 'completes', 'fails'],
  failure: 'Config',
  says: new RegExp(`the service answered ${status}`),
})

const expected: Readonly<Record<FaultKind, Expected>> = {
  '400': refused(400),
  '401': failsFinally('Config', /token is missing, wrong or expired.*credentials \(401\)/),
  '403': failsFinally('Config', /lacks permission.*\(403\)/),
  '413': refused(413),
  '429': retried(/answered 429|asks to wait/),
  '500': retried(/answered 500/),
  '502': retried(/answered 502/),
  '503': retried(/answered 503/),
  '504': retried(/answered 504/),
  reset: retried(/did not answer/),
  truncated: retried(/did not answer/),
  hang: retried(/did not answer \(ETIMEDOUT\)/),
  drip: retried(/did not answer \(ETIMEDOUT\)/),
  cutjson: { fates: ['completes', 'either', 'fails'], failure: 'Transient', says: /not what was asked for/ },
  html: { fates: ['completes', 'either', 'fails'], failure: 'Transient', says: /not what was asked for/ },
  application: { fates: ['completes', 'either', 'fails'], failure: 'Transient', says: /application error/ },
  revoke: failsFinally('Config', /credentials \(401\)/),
  contenttype: harmlessFault,
  stale: mayFail('Config', /not sent|does not tell/),
  duplicate: mayFail('Config', /not sent|does not tell/),
  clamp: harmlessFault,
  unknown: harmlessFault,
  nulls: harmlessFault,
}

type Line = Readonly<Record<string, unknown>>

type Family = Pick<FaultyWrite, 'operation' | 'config'> & {
  /** Where this family differs. */
  readonly expected?: Partial<Record<FaultKind, Expected>>
  readonly stream: string
  readonly key: string
  /** Records that no other run has sent: `run` is in what they are known by. */
  readonly rows: (run: number) => ReadonlyArray<Line>
  /** By what the service knows a record. */
  readonly known: (row: Line) => string
  readonly held: (sandbox: Sandbox) => Promise<ReadonlyArray<string>>
}

const numbered = <A>(make: (n: number) => A): ReadonlyArray<A> => Array.from({ length: count }, (_, n) => make(n))

const families: Readonly<Record<string, Family>> = {
  visits: {
    operation: 'createVisitRecords',
    stream: 'visit_records',
    key: 'id',
    config: { mapping },
    rows: (run) => numbered((n) => visitRow(n, { visitRecordId: `visit-${run}-${n}`, clinic: 'W1' })),
    known: ({ visitRecordId }) => String(visitRecordId),
    held: async (sandbox) => (await sandbox.truth()).visits.map(({ id }) => id),
  },
  locations: {
    operation: 'syncLocations',
    stream: 'locations',
    key: 'code',
    rows: (run) => numbered((n) => locationRow(1000 * (run + 1) + n)),
    known: ({ code }) => String(code),
    // What is answered to a token that is not valid is shown of a missing one only: 400 (Authentication 4).
    expected: { revoke: failsFinally('Config', /the service answered 400/) },
    held: async (sandbox) => (await sandbox.truth()).locations.map(({ code }) => code),
  },
}

describe.each(Object.entries(families))(`%s (seed ${seed})`, (name, { operation, config = {}, ...family }) => {
  const number = Object.keys(families).indexOf(name)
  let sandbox: Sandbox
  let writing: FaultyWrite
  let runs = 0
  beforeAll(async () => {
    sandbox = await startSandbox({ reviews: 10 })
    await sandbox.api.syncLocations([{ code: 'W1', active: true }])()
    writing = { api: sandbox.api, operation, config, catalog: configuredCatalogOf({ [family.stream]: family.key }) }
  })
  afterAll(() => sandbox.close())

  const input = (rows: ReadonlyArray<Line>, from = 0): string =>
    formatLines(formatStream(airbyteFormat, family.stream, family.key, rows, { from, every }))

  const missing = async (rows: ReadonlyArray<Line>): Promise<ReadonlyArray<string>> => {
    const held = await family.held(sandbox)
    return rows.map(family.known).filter((id) => held.filter((other) => other === id).length !== 1)
  }

  it('are all written where nothing strikes', async () => {
    const rows = family.rows(runs++)
    const { failures, requests, reached } = await writeWithFault(writing, input(rows))
    expect([failures, requests, reached]).toEqual([[], count / 10, count])
    expect(await missing(rows)).toEqual([])
  })

  const fate = async (kind: FaultKind, { at, strikes: n }: Cell): Promise<ExpectedFate> => {
    const { failure, says } = family.expected?.[kind] ?? expected[kind]
    const rows = family.rows(runs++)
    const from = placeOf(at, count / 10)
    const run = await writeWithFault(writing, input(rows), { fault: faultOf(kind), from, times: faultCounts[n] })
    const where = `${kind} at the ${at} request, ${faultCounts[n]} times`
    expect(run.faults, where).toBeGreaterThan(0)
    expect(await missing(rows.slice(0, run.reached)), where).toEqual([])
    if (run.failures.length === 0) {
      expect([run.reached, run.rejected], where).toEqual([count, 0])
      expect(await missing(rows), where).toEqual([])
      return 'completes'
    }
    for (const { _tag, message } of run.failures) {
      expect(_tag, `${where}: ${message}`).toBe(failure)
      expect(message, where).toMatch(says ?? /^$/)
    }
    const next = await writeWithFault(writing, input(rows, run.reached))
    expect([next.failures, next.reached], where).toEqual([[], count])
    expect(await missing(rows), where).toEqual([])
    return 'fails'
  }

  it.each(cellsOf(number))('struck by %s are all written once', { timeout: 120_000 }, async (kind, cells) => {
    for (const cell of cells) {
      const foreseen = (family.expected?.[kind] ?? expected[kind]).fates[cell.strikes]
      const became = await fate(kind, cell)
      if (foreseen !== 'either') expect(became, `${kind} at the ${cell.at} request`).toBe(foreseen)
    }
  })
})
