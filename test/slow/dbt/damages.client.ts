import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { drawSeed } from '../../support/draws'
import { runProgram } from '../../support/program'
import { random } from '../../support/random'
import { type LoadedService, loadChangingService } from './loads'

const seed = drawSeed
const trialCount = Number(process.env.DAMAGES ?? 1_000)
/** Ten for each damage; a thousandth of fewer than 4,000 would be less than what a bucket may have by chance. */
const reviewCount = Math.max(4_000, 10 * trialCount)
/** So many that none has more than a thousandth of the reviews. */
const bucketCount = 16_384

type Review = { readonly id: string; readonly modifiedTime: string }
let service: LoadedService
let reviews: ReadonlyArray<Review>

beforeAll(async () => {
  service = await loadChangingService(reviewCount, ['snapshot', 'meltano', 'pyairbyte'], ['reviews', 'deleted_reviews'])
  const deleted = new Set(service.postgres.ask('SELECT id FROM feedback.deleted_reviews').split('\n'))
  // An earlier version of a review that was restored is a deleted one.
  reviews = (await service.sandbox.truth()).reviews.filter(({ id }) => !deleted.has(id))
})
afterAll(() => service?.close())

const bucketOf = (id: string): number =>
  Number(BigInt(`0x${createHash('md5').update(id).digest('hex').slice(0, 15)}`) % BigInt(bucketCount))

/** SQL that damages a table, and what the audit must answer: each bucket with its difference. */
type Damage = { readonly sql: string; readonly answer: ReadonlyArray<string> }
type Draw = { readonly pick: () => Review; readonly upTo: (most: number) => number }
type DamageKind = (table: string, version: string, draw: Draw) => Damage

const kinds: Readonly<Record<'dropped' | 'doubled' | 'stale' | 'ghost' | 'swapped', DamageKind>> = {
  dropped: (table, _, { pick }) => {
    const { id } = pick()
    return { sql: `DELETE FROM ${table} WHERE id = ${id}`, answer: [`${bucketOf(id)} missing`] }
  },
  doubled: (table, _, { pick }) => {
    const { id } = pick()
    return {
      sql: `INSERT INTO ${table} SELECT * FROM ${table} WHERE id = ${id}`,
      answer: [`${bucketOf(id)} doubled`],
    }
  },
  stale: (table, version, { pick, upTo }) => {
    const { id } = pick()
    const earlier = `INTERVAL '${upTo(40_000_000)} milliseconds'`
    return {
      sql: `UPDATE ${table} SET ${version} = ${version} - ${earlier} WHERE id = ${id}`,
      answer: [`${bucketOf(id)} stale`],
    }
  },
  ghost: (table, version, { pick, upTo }) => {
    const ghost = String(upTo(600_000_000))
    return {
      sql: `INSERT INTO ${table} (id, ${version}) SELECT ${ghost}, ${version} FROM ${table} WHERE id = ${pick().id}`,
      answer: [`${bucketOf(ghost)} extra`],
    }
  },
  swapped: (table, version, { pick }) => {
    const first = pick()
    const drawOther = (): Review => {
      const other = pick()
      return other.modifiedTime === first.modifiedTime ? drawOther() : other
    }
    const other = drawOther()
    const versionOf = (id: string) => `(SELECT ${version} FROM ${table} WHERE id = ${id})`
    return {
      sql: `
        UPDATE ${table}
        SET ${version} = CASE WHEN id = ${first.id} THEN ${versionOf(other.id)} ELSE ${versionOf(first.id)} END
        WHERE id IN (${first.id}, ${other.id})`,
      answer: [...new Set([bucketOf(first.id), bucketOf(other.id)])]
        .sort((a, b) => a - b)
        .map((bucket) => `${bucket} stale`),
    }
  },
}

const drawDamages = (table: string, version: string, count: number): ReadonlyArray<Damage> => {
  const next = random(seed)
  const draw: Draw = {
    pick: () => reviews[Math.floor(next() * reviews.length)] as Review,
    upTo: (most) => 1 + Math.floor(next() * most),
  }
  const all = Object.values(kinds)
  return Array.from({ length: count }, () => all[draw.upTo(all.length) - 1] as DamageKind).map((kind) =>
    kind(table, version, draw),
  )
}

const printStatement = async (...args: ReadonlyArray<string>): Promise<string> => {
  const { status, stdout, stderr } = await runProgram('feedback', [
    ...['audit', '--config', join(service.files.path, 'config.json'), '--stream', 'reviews'],
    ...['--buckets', String(bucketCount), ...args],
  ])
  if (status !== 0) throw new Error(stderr)
  return stdout.trim().replace(/;$/, '')
}

/**
 * A statement in two parts, so that the service's data is unpacked once and not for every damage: tables of it, and the
 * rest of the statement, which reads the audited table.
 */
const cutStatement = (sql: string): { readonly tables: string; readonly rest: string } => {
  const [expected, rest] = sql.split(',\nloaded_rows AS (')
  if (expected === undefined || rest === undefined) throw new Error('The statement has another shape.')
  const tables = ['places', 'expected'].map(
    (name) => `CREATE TEMP TABLE ${name} AS ${expected} SELECT * FROM ${name};\n`,
  )
  return { tables: tables.join(''), rest: `WITH loaded_rows AS (${rest}` }
}

/** Rows of an answer as `bucket difference`, and of how many reviews the largest bucket named was. */
type Answer = { readonly rows: ReadonlyArray<string>; readonly reviews: number }

const toAnswer = (rows: ReadonlyArray<ReadonlyArray<unknown>>): Answer => ({
  rows: rows.map(([bucket, difference]) => `${bucket} ${difference}`),
  reviews: Math.max(0, ...rows.map((row) => Number(row[2]))),
})

/** The first answer is of the undamaged table, each other one of a damage. */
const expectAnswers = (answers: ReadonlyArray<Answer>, damages: ReadonlyArray<Damage>): void => {
  expect(answers[0]?.rows).toEqual([])
  const wrong = damages.flatMap(({ sql, answer }, trial) => {
    const found = answers[trial + 1]?.rows ?? []
    return JSON.stringify(found) === JSON.stringify(answer) ? [] : [{ sql, answer, found }]
  })
  expect(wrong).toEqual([])
  expect(answers).toHaveLength(damages.length + 1)
  const largest = answers.reduce((most, answer) => Math.max(most, answer.reviews), 0)
  expect(largest).toBeLessThanOrEqual(reviews.length / 1_000)
}

/** All damages in one session of PostgreSQL, each rolled back. */
const answersOfPostgres = (sql: string, damages: ReadonlyArray<Damage>): ReadonlyArray<Answer> => {
  const { tables, rest } = cutStatement(sql)
  const settings = 'SET jit = off; SET max_parallel_workers_per_gather = 0'
  const trials = damages.map((damage) => `BEGIN; ${damage.sql}; EXECUTE audit; ROLLBACK; SELECT '--';`)
  return service.postgres
    .ask(`${settings}; ${sql}; SELECT '--'; ${tables} PREPARE audit AS ${rest};\n${trials.join('\n')}`)
    .split('--\n')
    .slice(0, -1)
    .map((part) => {
      const rows = part
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => line.split('|'))
      return toAnswer(rows)
    })
}

const title = (count: number) =>
  `each of ${count} random damages (seed ${seed}) is found, with its kind, in the bucket of its review, in a table`

it(`${title(trialCount / 2)} of Meltano in PostgreSQL`, async () => {
  // The target's table has a primary key, which refuses a second row.
  service.postgres.ask('CREATE TABLE feedback.damaged AS SELECT * FROM feedback.reviews')
  const table = ['--table', 'feedback.damaged', '--deletions', 'feedback.deleted_reviews']
  const loader = ['--dialect', 'postgres', '--loader', 'meltano', '--time-zone', 'Asia/Kolkata']
  const damages = drawDamages('feedback.damaged', '"modifiedTime"', trialCount / 2)
  expectAnswers(answersOfPostgres(await printStatement(...table, ...loader), damages), damages)
})

it(`${title(trialCount / 2)} of PyAirbyte in PostgreSQL`, async () => {
  const table = ['--table', 'pyairbyte.reviews', '--deletions', 'pyairbyte.deleted_reviews']
  const damages = drawDamages('pyairbyte.reviews', 'modifiedtime', trialCount / 2)
  const sql = await printStatement(...table, '--dialect', 'postgres', '--loader', 'pyairbyte')
  expectAnswers(answersOfPostgres(sql, damages), damages)
})

it(`${title(trialCount)} of a snapshot in DuckDB`, async () => {
  const connection = await (await DuckDBInstance.create(service.loads.snapshot)).connect()
  try {
    // The snapshot's own table has a primary key too.
    await connection.run('CREATE TEMP TABLE damaged AS FROM reviews')
    const sql = await printStatement('--table', 'damaged', '--dialect', 'duckdb', '--loader', 'snapshot')
    const { tables, rest } = cutStatement(sql)
    const answers = [toAnswer((await connection.runAndReadAll(sql)).getRows())]
    await connection.run(tables)
    const audit = await connection.prepare(rest)
    const damages = drawDamages('damaged', '"modifiedTime"', trialCount)
    for (const damage of damages) {
      await connection.run('BEGIN')
      await connection.run(damage.sql)
      answers.push(toAnswer((await audit.runAndReadAll()).getRows()))
      await connection.run('ROLLBACK')
    }
    expectAnswers(answers, damages)
  } finally {
    connection.closeSync()
  }
})
