import { existsSync, readFileSync, statSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import * as E from 'fp-ts/Either'
import { beforeAll, describe, expect, it } from 'vitest'
import { decodeFaultPlan } from '../../connector/sandbox/faults/plan'
import { type Sandbox, startSandbox } from '../../connector/sandbox/start'
import { streams } from '../../connector/streams/streams'
import { newTempPath, writeTempFile } from '../support/files'
import { runProgram, startProgram } from '../support/program'
import { compareWithTruth, type TableDifference } from '../support/truth'

const reviews = Number(process.env.BACKFILL ?? 200_000)
/** More than 2,000 requests however many reviews there are. */
const pageSize = Math.max(10, Math.min(1000, Math.round(reviews / 2000)))
/** An hour has enough rows for several transactions. */
const requestsPerHour = Math.max(240, Math.round(40_000 / pageSize))
const secondsPerRequest = 3600 / requestsPerHour
/**
 * On a machine that is fast enough, a run killed before its first transaction would continue from the same place
 * forever.
 */
const minRunMillis = 10_000
/** Of one run of `feedback sync`; measured peaks are far below. */
const maxPeakMb = 1300
/**
 * What a kill may lose: two transactions, one that is being committed and one that is gathered, and the pages asked for
 * ahead.
 */
const maxRowsAgain = 70_000 + 10 * pageSize

const exportStreams = streams.filter(({ reader }) => /^export /.test(reader.name)).map(({ name }) => name)

const multiplesOf = (number: number): ReadonlyArray<number> =>
  Array.from({ length: 100_000 / number }, (_, n) => (n + 1) * number)

/** The rarer fault comes first: of two rules that match a request the first one is used. */
const readFaults = () => {
  const faults = decodeFaultPlan([
    { kind: 'reset', requests: multiplesOf(1000) },
    { kind: '429', requests: multiplesOf(200) },
  ])
  if (E.isLeft(faults)) throw new Error(faults.left)
  return faults.right
}

/** One run of `feedback sync`, up to its kill or its end. */
type Run = {
  readonly end: string
  readonly stderr: string
  readonly seconds: number
  readonly peakMb: number
  readonly fileMb: number
  /** To open the file after it, with the log that a kill has left. */
  readonly openSeconds: number
  /** Where the previous run was to continue, and where it had come. */
  readonly committed: ScanPlace | undefined
  readonly reached: ScanPlace | undefined
  /** Its first page of reviews. */
  readonly first: ScanPlace | undefined
  /** Where its streams would continue. */
  readonly places: ReadonlyArray<ScanPlace>
}

/** A place in a scan, which its `modifiedTimeFrom` identifies. */
type ScanPlace = { readonly from: string; readonly offset: number }

type ReviewRequest = { readonly modifiedTimeFrom: string; readonly offset: number; readonly limit: number }

const readPeak = (pid: number | undefined): number => {
  const path = `/proc/${pid}/status`
  return existsSync(path) ? Number(/VmHWM:\s+(\d+)/.exec(readFileSync(path, 'utf8'))?.[1] ?? 0) / 1024 : 0
}

const countRequests = (sandbox: Sandbox): number =>
  Object.values(sandbox.stats().requests).reduce((sum, count) => sum + count, 0)

type ExportedState = ReadonlyArray<{
  readonly stream: {
    readonly stream_state: {
      readonly scan?: { readonly from: string; readonly pass: { readonly offset: number } }
    }
  }
}>

describe(`a backfill of ${reviews} reviews through a night`, () => {
  const runs: Run[] = []
  let stats: ReturnType<Sandbox['stats']>
  let differences: Readonly<Record<string, TableDifference>> = {}

  beforeAll(async () => {
    const began = Date.now()
    const data = newTempPath('duckdb')
    const sandbox = await startSandbox({
      reviews,
      like: 'published',
      db: data,
      secondsPerRequest,
      faults: readFaults(),
    })
    const db = newTempPath('duckdb')
    const config = writeTempFile({
      base_url: sandbox.url,
      credentials: {
        auth_type: 'application',
        application_id: sandbox.applicationId,
        application_secret: sandbox.applicationSecret,
      },
      start_date: '2010-01-01T00:00:00Z',
      page_size: pageSize,
    })
    const sync = ['sync', '--config', config, '--db', db, '--select', exportStreams.join(',')]
    let lastEntry = 0
    /** The pages of reviews asked for since the last call; a request for fewer rows is the check of the token. */
    const takeRequests = () => {
      const entries = sandbox.log().filter(({ n }) => n > lastEntry)
      lastEntry = entries.at(-1)?.n ?? lastEntry
      return entries.flatMap(({ operation, request, status }) => {
        const asked = request as ReviewRequest | null
        return asked !== null && operation === 'exportReviews' && asked.limit === pageSize
          ? [{ ...asked, isServed: status === 200 }]
          : []
      })
    }
    /** Where the file says that each stream continues, the least advanced first. */
    const readPlaces = async () => {
      const { stdout, status, stderr } = await runProgram('feedback', ['state', 'export', '--db', db])
      expect(status, stderr).toBe(0)
      const scans = (JSON.parse(stdout) as ExportedState).flatMap(({ stream }) => stream.stream_state.scan ?? [])
      return scans
        .map(({ from, pass }): ScanPlace => ({ from, offset: pass.offset }))
        .sort((a, b) => a.offset - b.offset)
    }
    let committed: ScanPlace | undefined
    let reached: ScanPlace | undefined
    for (let hour = 1; hour <= 48 && runs.at(-1)?.end !== 'exit 0'; hour += 1) {
      const start = Date.now()
      const running = startProgram('feedback', sync)
      let isOver = false
      const ended = running.ended.finally(() => {
        isOver = true
      })
      let peakMb = 0
      const isHourOver = () => countRequests(sandbox) >= hour * requestsPerHour && Date.now() - start >= minRunMillis
      while (!isOver && !isHourOver()) {
        peakMb = Math.max(peakMb, readPeak(running.pid))
        await sleep(20)
      }
      running.kill('SIGKILL')
      const { status, signal, stderr } = await ended
      const seconds = (Date.now() - start) / 1000
      const opening = Date.now()
      const places = await readPlaces()
      const openSeconds = (Date.now() - opening) / 1000
      const requests = takeRequests()
      const [firstRequest] = requests
      const first = firstRequest && { from: firstRequest.modifiedTimeFrom, offset: firstRequest.offset }
      const run: Run = {
        end: signal ?? `exit ${status}`,
        ...{ stderr, seconds, peakMb, openSeconds, committed, reached, first },
        fileMb: (existsSync(db) ? statSync(db).size : 0) / 1e6,
        places,
      }
      runs.push(run)
      console.log(
        `run ${hour}: ${run.end} after ${seconds.toFixed(0)} s; peak ${peakMb.toFixed(0)} MB; file ` +
          `${run.fileMb.toFixed(0)} MB, opened in ${openSeconds.toFixed(1)} s; from ${first?.offset} (committed ` +
          `${committed?.offset}, asked for before: up to ${reached?.offset}); ${stderr.trim().split('\n').at(-1)}`,
      )
      committed = places[0]
      const last = requests.at(-1)
      reached = last && {
        from: last.modifiedTimeFrom,
        offset: Math.max(
          ...requests
            .filter(({ modifiedTimeFrom, isServed }) => isServed && modifiedTimeFrom === last.modifiedTimeFrom)
            .map(({ offset, limit }) => offset + limit),
        ),
      }
      if (run.end === 'SIGKILL') await sandbox.churn({ change: 40, delete: 40, add: 20, restore: 5 })
    }
    // Twice, since what changes while a run reads is left to the next one; the clock moves on, so that it lies in the
    // past then.
    for (let quiet = 0; quiet < 2; quiet += 1) {
      sandbox.forward(3600)
      const { status, stderr } = await runProgram('feedback', sync)
      expect(status, stderr).toBe(0)
    }
    stats = sandbox.stats()
    await sandbox.close()
    const comparing = Date.now()
    differences = await compareWithTruth(data, db)
    const [read, compared] = [comparing - began, Date.now() - comparing].map((millis) => (millis / 1000).toFixed(0))
    console.log(`read in ${read} s, compared in ${compared} s; ${JSON.stringify(stats)}`)
    console.log(JSON.stringify(differences))
  }, 10_800_000)

  it('is killed once an hour and complete in the end', () => {
    expect(runs.map(({ end }) => end)).toEqual([...runs.slice(1).map(() => 'SIGKILL'), 'exit 0'])
    expect(runs.length).toBeGreaterThan(3)
  })

  it('meets each kind of fault as often as planned', () => {
    const requests = Object.values(stats.requests).reduce((sum, count) => sum + count, 0)
    expect(stats.faults).toEqual({
      reset: Math.floor(requests / 1000),
      429: Math.floor(requests / 200) - Math.floor(requests / 1000),
    })
    expect(stats.faults.reset).toBeGreaterThan(1)
    // A token lives for half an hour, and each run after a kill asks for its own.
    expect(stats.requests.issueToken).toBeGreaterThanOrEqual(2 * (runs.length - 1))
  })

  it('goes on after each kill where the file says, and asks for little again', () => {
    for (const { first, committed, reached, places } of runs.slice(1)) {
      expect(first).toEqual(committed ?? { from: first?.from, offset: 0 })
      if (first !== undefined && first.from === reached?.from)
        expect(reached.offset - first.offset).toBeLessThan(maxRowsAgain)
      // No stream holds the others back by more than the page in progress.
      const [least, most] = [places[0]?.offset ?? 0, places.at(-1)?.offset ?? 0]
      expect(most - least).toBeLessThanOrEqual(2 * pageSize)
    }
  })

  it('needs no more memory for it than a small machine has', () => {
    for (const { peakMb } of runs) expect(peakMb).toBeLessThan(maxPeakMb)
  })

  it('leaves every table equal to what the service holds', () => {
    expect(Object.keys(differences).sort()).toEqual([...exportStreams].sort())
    for (const [table, { rows, ...counts }] of Object.entries(differences)) {
      expect(rows, table).toBeGreaterThan(0)
      expect(counts, table).toEqual({ missing: 0, additional: 0, different: 0 })
    }
  })
})
