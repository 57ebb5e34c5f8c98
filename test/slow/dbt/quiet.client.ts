import { readFileSync, writeFileSync } from 'node:fs'
import { DuckDBInstance } from '@duckdb/node-api'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { auditCommand } from '../../../connector/cli/audit'
import { sourceDiscoverCommand, sourceReadCommand } from '../../../connector/cli/feedback-source'
import { stateCommand } from '../../../connector/cli/state'
import { syncCommand } from '../../../connector/cli/sync'
import { drawSeed } from '../../support/draws'
import { newTempPath, writeTempFile } from '../../support/files'
import { airbyteLines, airbyteState, configureStreams } from '../../support/lines'
import { random } from '../../support/random'
import { runCommand } from '../../support/run-command'
import { reviewsConfig, startChangingSandbox } from '../../support/sandbox'
import { type Postgres, startPostgres } from './postgres'

const seed = drawSeed
/** Of each of four services, two a loader. */
const trialCount = Number(process.env.TRIALS ?? 50)

let postgres: Postgres
beforeAll(async () => {
  postgres = await startPostgres()
})
afterAll(() => postgres?.stop())

const run = async (...given: Parameters<typeof runCommand>): Promise<string> => {
  const { status, stdout, stderr } = await runCommand(...given)
  if (status !== 0) throw new Error(`${given[1].join(' ')}: ${stderr}`)
  return stdout
}

/** A table, and how to describe it to an audit. */
type Loaded = {
  readonly config: string
  readonly state: string
  readonly options: ReadonlyArray<string>
  /** Reads what is new into the table, and writes the state that it ended with. */
  readonly load: () => Promise<void>
  /** The answers of a statement, then of the same statement over a table that has lost a sixteenth of its reviews. */
  readonly ask: (sql: string, digit: number) => Promise<readonly [whole: number, damaged: number]>
}

type Service = Parameters<typeof reviewsConfig>[0]

const syncSnapshot = async (sandbox: Service): Promise<Loaded> => {
  const config = writeTempFile(reviewsConfig(sandbox, { page_size: 100 }))
  const [db, state] = [newTempPath('duckdb'), newTempPath('json')]
  const ask: Loaded['ask'] = async (sql, digit) => {
    const instance = await DuckDBInstance.create(db)
    const connection = await instance.connect()
    try {
      const whole = (await connection.runAndReadAll(sql)).getRows().length
      await connection.run(`CREATE TEMP TABLE damaged AS FROM reviews WHERE md5(id::VARCHAR)[1] <> '${digit}'`)
      const damaged = (
        await connection.runAndReadAll(sql.replace('FROM reviews AS loaded', 'FROM damaged AS loaded'))
      ).getRows().length
      return [whole, damaged]
    } finally {
      connection.closeSync()
      instance.closeSync()
    }
  }
  const load = async () => {
    await run(syncCommand, ['--config', config, '--db', db, '--select', 'reviews,deleted_reviews'])
    await run(stateCommand, ['export', '--db', db, '--out', state])
  }
  return { config, state, options: ['--dialect', 'duckdb', '--loader', 'snapshot', '--table', 'reviews'], load, ask }
}

let tableCount = 0

/** Appends like Airbyte's destination: one row for each record, with deletions as separate records. */
const appendToPostgres = async (sandbox: Service): Promise<Loaded> => {
  const settings = { page_size: 100, deletes: 'tombstones' }
  const config = writeTempFile(reviewsConfig(sandbox, settings))
  const discovered = airbyteLines(await run(sourceDiscoverCommand, ['--config', config]))[0]?.catalog?.streams ?? []
  const reviews = discovered.filter(({ name }) => name === 'reviews')
  const catalog = writeTempFile(configureStreams(reviews, 'incremental'))
  const state = writeTempFile([])
  tableCount += 1
  const table = `reviews_${tableCount}`
  const columns = 'id bigint, "modifiedTime" timestamptz, _ab_cdc_deleted_at timestamptz'
  postgres.ask(`CREATE TABLE ${table} (${columns})`)
  const load = async () => {
    const stdout = await run(sourceReadCommand, ['--config', config, '--catalog', catalog, '--state', state])
    const records = stdout
      .split('\n')
      .filter((line) => line.startsWith('{"type":"RECORD"'))
      .map((line) => `('${line.replaceAll("'", "''")}'::jsonb)`)
    if (records.length > 0)
      postgres.ask(
        `INSERT INTO ${table}
         SELECT row.*
         FROM (VALUES ${records.join(',\n')}) AS given (line),
           jsonb_to_record(line->'record'->'data') AS row (${columns})`,
      )
    const states = airbyteState(stdout)
    if (states.length > 0) writeFileSync(state, JSON.stringify(states))
  }
  const count = (sql: string) => postgres.ask(sql).split('\n').length - 1
  const ask: Loaded['ask'] = async (sql, digit) => [
    count(sql),
    count(`BEGIN; DELETE FROM ${table} WHERE left(md5(id::text), 1) = '${digit}'; ${sql} ROLLBACK;`),
  ]
  return { config, state, options: ['--dialect', 'postgres', '--table', table, '--all-versions'], load, ask }
}

it.each([
  ['a snapshot that feedback sync goes on with', syncSnapshot, 1],
  ['a snapshot that feedback sync goes on with', syncSnapshot, 2],
  ['a table in PostgreSQL that every version is appended to', appendToPostgres, 3],
  ['a table in PostgreSQL that every version is appended to', appendToPostgres, 4],
] as const)(
  `no false alarm in ${trialCount} loads and audits of %s, while the service changes`,
  async (_, create, service) => {
    const next = random(seed + service)
    const upTo = (most: number) => Math.floor(next() * (most + 1))
    const draw = () => ({ change: 1 + upTo(2), delete: upTo(1), add: upTo(1), restore: upTo(1) })
    const { sandbox } = await startChangingSandbox({ reviews: 300, seed: seed + service, churn: draw() })
    const alarms: Array<string> = []
    let [changed, tellingTrials] = [0, 0]
    try {
      const table = await create(sandbox)
      await table.load()
      for (let trial = 0; trial < trialCount; trial += 1) {
        sandbox.setChurn(draw())
        // A bulk change gives many reviews one version.
        await sandbox.churn({ change: upTo(30), delete: upTo(4), add: upTo(6), restore: upTo(2) })
        sandbox.forward(upTo(90))
        await table.load()
        if (next() < 0.5) await sandbox.churn(draw())
        sandbox.forward(upTo(20))
        const given = ['--config', table.config, '--stream', 'reviews', '--state', table.state, '--buckets', '64']
        const { sql, reviews, changed_since } = JSON.parse(
          await run(auditCommand, [...given, ...table.options, '--json']),
        )
        const [whole, damaged] = await table.ask(sql, upTo(9))
        if (whole > 0) alarms.push(`trial ${trial}: ${whole} buckets as of ${readFileSync(table.state, 'utf8')}`)
        // If enough reviews stay unchanged while the audit reads, it finds what is lost.
        if (reviews > 50) {
          expect(damaged).toBeGreaterThan(0)
          tellingTrials += 1
        }
        changed += changed_since
      }
    } finally {
      await sandbox.close()
    }
    expect(alarms).toEqual([])
    expect(changed).toBeGreaterThan(trialCount)
    expect(tellingTrials).toBeGreaterThan(trialCount / 2)
  },
)
