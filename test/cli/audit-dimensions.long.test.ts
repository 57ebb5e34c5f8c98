import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { personConventions } from '../../connector/cdk/program/exit'
import { auditCommand } from '../../connector/cli/audit'
import { stateCommand } from '../../connector/cli/state'
import { syncCommand } from '../../connector/cli/sync'
import type { Sandbox } from '../../connector/sandbox/start'
import { runCommand } from '../support/run-command'
import { lookupSettings, reviewsConfig, startTestSandbox } from '../support/sandbox'
import { useDatabase } from '../support/snapshot-messages'

const folder = mkdtempSync(join(tmpdir(), 'audit-dimensions-'))
const path = (name: string): string => join(folder, name)
const config = path('config.json')
const db = path('feedback.duckdb')
const state = path('state.json')
let sandbox: Sandbox

const settings = (more: object = {}) => reviewsConfig(sandbox, more)

type Answer = ReadonlyArray<Readonly<Record<string, unknown>>>

const useDb = (sql: string): Promise<Answer> => useDatabase(db, 'change', ({ query }) => query(sql))

const auditWith = (file: string, ...args: ReadonlyArray<string>) =>
  runCommand(auditCommand, ['--config', file, '--dialect', 'duckdb', '--loader', 'snapshot', ...args], {
    fail: personConventions.reportFailure,
  })

/** What the statement answers for a table of the file. */
const answer = async (...args: ReadonlyArray<string>): Promise<Answer> => {
  const { status, stdout, stderr } = await auditWith(config, ...args)
  expect([status, stderr]).toEqual([0, ''])
  return useDb(stdout)
}

const sync = async (): Promise<void> => {
  const args = ['--config', config, '--db', db, '--select', 'reviews,locations,providers,sources,categories,questions']
  expect(await runCommand(syncCommand, args)).toMatchObject({ status: 0 })
  expect(await runCommand(stateCommand, ['export', '--db', db, '--out', state])).toMatchObject({ status: 0 })
}

beforeAll(async () => {
  sandbox = await startTestSandbox({ reviews: 300, until: Date.now() - 3_600_000 })
  writeFileSync(config, JSON.stringify(settings()))
  await sync()
})
afterAll(async () => {
  await sandbox.close()
  rmSync(folder, { recursive: true })
})

const dimensions = ['locations', 'providers', 'sources', 'categories', 'questions']

describe.each(dimensions)('feedback audit --stream %s', (stream) => {
  const table = ['--stream', stream, '--table', stream]

  it('finds nothing in a table that holds what the newest reviews name', async () => {
    const { stdout } = await auditWith(config, ...table, '--json')
    const { rows, sql } = JSON.parse(stdout)
    const [counted] = await useDb(`SELECT count(*)::INTEGER AS rows FROM ${stream}`)
    expect(rows).toBeGreaterThan(0)
    expect(rows).toBeLessThanOrEqual(Number(counted?.rows))
    expect(await useDb(sql)).toEqual([])
    // What no review names any more may stay.
    const id = stream === 'categories' ? "'It''s gone'" : '7'
    await useDb(`INSERT INTO ${stream} (id, "reviewModifiedTime") VALUES (${id}, '2020-01-01')`)
    expect(await answer(...table, '--state', state)).toEqual([])
  })

  it('names what is missing, doubled or changed, and repairs it', async () => {
    const hasName = !['categories', 'questions'].includes(stream)
    const ids = (
      await useDb(
        `SELECT id::VARCHAR AS id FROM ${stream} WHERE "reviewModifiedTime" > '2021-01-01' ORDER BY hash(id) LIMIT 3`,
      )
    ).map(({ id }) => String(id))
    const [missing, doubled, changed] = ids.map((id) => `id::VARCHAR = '${id.replaceAll("'", "''")}'`)
    await useDb(`INSERT INTO ${stream} FROM ${stream} WHERE ${doubled}`)
    await useDb(`DELETE FROM ${stream} WHERE ${missing}`)
    // Of a review long ago, since a row of a newer review than those of today is not compared.
    if (hasName)
      await useDb(
        `UPDATE ${stream} SET name = 'Ünder "another" name', "reviewModifiedTime" = '2020-06-01' WHERE ${changed}`,
      )
    const named = await answer(...table, '--state', state)
    expect(new Map(named.map(({ id, difference }) => [String(id), difference]))).toEqual(
      new Map([[ids[0], 'missing'], [ids[1], 'doubled'], ...(hasName ? [[ids[2], 'changed'] as const] : [])]),
    )
    const csv = [Object.keys(named[0] ?? {}), ...named.map((row) => Object.values(row).map((cell) => cell ?? ''))]
    writeFileSync(path('answer.csv'), csv.map((cells) => cells.join(',')).join('\n'))
    expect(await runCommand(auditCommand, ['--answer', path('answer.csv')])).toMatchObject({
      status: 1,
      stdout: expect.stringContaining(`differs from the service in ${named.length} dimensions`),
    })
    const options = [...table, '--state', state, '--repair', path('answer.csv'), '--folder', path('repair')]
    expect(await auditWith(config, ...options)).toMatchObject({ status: 0, stdout: '' })
    await useDb(readFileSync(path('repair/delete.sql'), 'utf8'))
    const imported = ['import', '--db', db, '--state', path('repair/state.json')]
    expect(await runCommand(stateCommand, imported)).toMatchObject({ status: 0 })
    await sync()
    expect(await answer(...table, '--state', state)).toEqual([])
  })

  it('stays quiet while reviews change and are deleted', async () => {
    await sandbox.churn({ change: 30, delete: 10, add: 5 })
    expect(await answer(...table, '--state', state)).toEqual([])
  })
})

describe('feedback audit of dimensions', () => {
  it.each([
    [['--ids', '17'], 'names what differs; leave out --ids'],
    [['--deep'], '--deep compares the rows of reviews'],
  ])('refuses %j', async (args, message) => {
    const { status, stderr } = await auditWith(config, '--stream', 'locations', '--table', 'locations', ...args)
    expect(status).toBe(2)
    expect(stderr).toContain(message)
  })

  it('refuses sources of a lookup', async () => {
    const looked = path('lookup.json')
    for (const sources of [true, lookupSettings.sources]) {
      writeFileSync(looked, JSON.stringify(settings({ lookups: { sources } })))
      const { status, stderr } = await auditWith(looked, '--stream', 'sources', '--table', 'sources')
      expect(status).toBe(78)
      expect(stderr).toContain('sources comes from the lookup of the config')
    }
  })
})
