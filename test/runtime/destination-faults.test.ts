import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { FaultKind } from '../../connector/sandbox/faults/plan'
import type { Sandbox } from '../../connector/sandbox/start'
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
  commonFaults,
  type Expected,
  type ExpectedFate,
  type FaultCase,
  failsFinally,
  faultCasesOf,
  faultCounts,
  faultOf,
  firstFaultyRequest,
  mayFail,
} from '../support/fault-matrix'
import { startTestSandbox } from '../support/sandbox'

const count = 60
const every = 5

/** A refused batch is halved down to the bad record; if the service refuses every record, the run fails. */
const halved = (status: number): Expected => ({
  fates: ['completes', 'completes', 'fails'],
  failure: 'Config',
  says: new RegExp(`the service answered ${status}`),
})

const expected: Readonly<Record<FaultKind, Expected>> = {
  ...commonFaults,
  '400': halved(400),
  '413': halved(413),
  cutjson: { fates: ['completes', 'either', 'fails'], failure: 'Transient', says: /not what was asked for/ },
  html: { fates: ['completes', 'either', 'fails'], failure: 'Transient', says: /not what was asked for/ },
  application: { fates: ['completes', 'either', 'fails'], failure: 'Transient', says: /application error/ },
  stale: mayFail('Config', /not sent|does not say which/),
  duplicate: mayFail('Config', /not sent|does not say which/),
}

type Line = Readonly<Record<string, unknown>>

type Family = Pick<FaultyWrite, 'operation' | 'config'> & {
  /** What differs for this family. */
  readonly expected?: Partial<Record<FaultKind, Expected>>
  readonly stream: string
  readonly key: string
  /** Records that no other run has sent: their ids contain `run`. */
  readonly rows: (run: number) => ReadonlyArray<Line>
  /** The id of a record at the service. */
  readonly idOf: (row: Line) => string
  readonly storedIds: (sandbox: Sandbox) => Promise<ReadonlyArray<string>>
}

const createRows = <A>(create: (n: number) => A): ReadonlyArray<A> => Array.from({ length: count }, (_, n) => create(n))

const families: Readonly<Record<string, Family>> = {
  visits: {
    operation: 'createVisitRecords',
    stream: 'visit_records',
    key: 'id',
    config: { mapping },
    rows: (run) => createRows((n) => visitRow(n, { visitRecordId: `visit-${run}-${n}`, clinic: 'W1' })),
    idOf: ({ visitRecordId }) => String(visitRecordId),
    storedIds: async (sandbox) => (await sandbox.truth()).visits.map(({ id }) => id),
  },
  locations: {
    operation: 'syncLocations',
    stream: 'locations',
    key: 'code',
    rows: (run) => createRows((n) => locationRow(1000 * (run + 1) + n)),
    idOf: ({ code }) => String(code),
    // For this operation the service's specification shows only the answer to a missing token, which is 400.
    expected: { revoke: failsFinally('Config', /the service answered 400/) },
    storedIds: async (sandbox) => (await sandbox.truth()).locations.map(({ code }) => code),
  },
}

describe.each(Object.entries(families))('%s', (name, { operation, config = {}, ...family }) => {
  const familyNumber = Object.keys(families).indexOf(name)
  let sandbox: Sandbox
  let write: FaultyWrite
  let runs = 0
  beforeAll(async () => {
    sandbox = await startTestSandbox({ reviews: 10 })
    await sandbox.api.syncLocations([{ code: 'W1', active: true }])()
    write = { api: sandbox.api, operation, config, catalog: configuredCatalogOf({ [family.stream]: family.key }) }
  })
  afterAll(() => sandbox.close())

  const input = (rows: ReadonlyArray<Line>, from = 0): string =>
    formatLines(formatStream(airbyteFormat, family.stream, family.key, rows, { from, every }))

  const findNotStoredOnce = async (rows: ReadonlyArray<Line>): Promise<ReadonlyArray<string>> => {
    const storedIds = await family.storedIds(sandbox)
    return rows.map(family.idOf).filter((id) => storedIds.filter((other) => other === id).length !== 1)
  }

  it('are all written without a fault', async () => {
    const rows = family.rows(runs++)
    const { failures, requests, reached } = await writeWithFault(write, input(rows))
    expect([failures, requests, reached]).toEqual([[], count / 10, count])
    expect(await findNotStoredOnce(rows)).toEqual([])
  })

  const runWithFault = async (kind: FaultKind, { at, countIndex: n }: FaultCase): Promise<ExpectedFate> => {
    const { failure, says } = family.expected?.[kind] ?? expected[kind]
    const rows = family.rows(runs++)
    const from = firstFaultyRequest(at, count / 10)
    const run = await writeWithFault(write, input(rows), { fault: faultOf(kind), from, times: faultCounts[n] })
    const where = `${kind} at the ${at} request, ${faultCounts[n]} times`
    expect(run.faults, where).toBeGreaterThan(0)
    expect(await findNotStoredOnce(rows.slice(0, run.reached)), where).toEqual([])
    if (run.failures.length === 0) {
      expect([run.reached, run.rejected], where).toEqual([count, 0])
      expect(await findNotStoredOnce(rows), where).toEqual([])
      return 'completes'
    }
    for (const { _tag, message } of run.failures) {
      expect(_tag, `${where}: ${message}`).toBe(failure)
      expect(message, where).toMatch(says ?? /^$/)
    }
    const next = await writeWithFault(write, input(rows, run.reached))
    expect([next.failures, next.reached], where).toEqual([[], count])
    expect(await findNotStoredOnce(rows), where).toEqual([])
    return 'fails'
  }

  it.each(faultCasesOf(familyNumber))('are all written once despite the fault %s', async (kind, cases) => {
    for (const one of cases) {
      const expectedFate = (family.expected?.[kind] ?? expected[kind]).fates[one.countIndex]
      const fate = await runWithFault(kind, one)
      if (expectedFate !== 'either') expect(fate, `${kind} at the ${one.at} request`).toBe(expectedFate)
    }
  })
})
