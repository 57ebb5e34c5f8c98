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
import { reviewsConfig, startTestSandbox } from '../support/sandbox'
import { useDatabase } from '../support/snapshot-messages'

const folder = mkdtempSync(join(tmpdir(), 'audit-entities-'))
const path = (name: string): string => join(folder, name)
const config = path('config.json')
const db = path('feedback.duckdb')
const state = path('state.json')
const locations = ['1001', '1002', '1003', '1004', '1005', '1006']
let sandbox: Sandbox

const settings = (entities: object) => reviewsConfig(sandbox, { entities })

type Answer = ReadonlyArray<Readonly<Record<string, unknown>>>

const useDb = (sql: string): Promise<Answer> => useDatabase(db, 'change', ({ query }) => query(sql))

const auditWith = (file: string, ...args: ReadonlyArray<string>) =>
  runCommand(auditCommand, ['--config', file, '--dialect', 'duckdb', '--loader', 'snapshot', ...args], {
    fail: personConventions.reportFailure,
  })

const audit = (...args: ReadonlyArray<string>) => auditWith(config, ...args)

/** What the statement answers for a table of the file. */
const answer = async (...args: ReadonlyArray<string>): Promise<Answer> => {
  const { status, stdout, stderr } = await audit(...args)
  expect([status, stderr]).toEqual([0, ''])
  return useDb(stdout)
}

const sync = async (): Promise<void> => {
  const args = ['--config', config, '--db', db, '--select', 'comments,transparency_reviews']
  expect(await runCommand(syncCommand, args)).toMatchObject({ status: 0 })
  expect(await runCommand(stateCommand, ['export', '--db', db, '--out', state])).toMatchObject({ status: 0 })
}

beforeAll(async () => {
  sandbox = await startTestSandbox({ reviews: 300, until: Date.now() - 3_600_000 })
  writeFileSync(config, JSON.stringify(settings({ location_ids: locations })))
  await sync()
})
afterAll(async () => {
  await sandbox.close()
  rmSync(folder, { recursive: true })
})

describe.each([
  ['comments', 'id'],
  ['transparency_reviews', 'documentId'],
])('feedback audit --stream %s', (stream, key) => {
  const table = ['--stream', stream, '--table', stream]

  it('finds a table equal that holds what the service has', async () => {
    const { stdout } = await audit(...table, '--json')
    const { rows, entities, sql, left_out } = JSON.parse(stdout)
    const [counted] = await useDb(
      `SELECT count(*)::INTEGER AS rows, count(DISTINCT "entityId")::INTEGER AS entities FROM ${stream}`,
    )
    expect(rows).toBe(counted?.rows)
    expect(entities).toBeGreaterThanOrEqual(Number(counted?.entities))
    expect(left_out).toEqual([])
    expect(await useDb(sql)).toEqual([])
    expect(await answer(...table, '--state', state, '--window', 'year')).toEqual([])
  })

  it('names the rows that differ, and repairs them', async () => {
    const rows = await useDb(
      `SELECT "entityId" AS entity, ${key}::VARCHAR AS id FROM ${stream} ORDER BY hash(${key}) LIMIT 4`,
    )
    const [dropped, doubled, stale, moved] = rows.map(({ entity, id }) => `"entityId" = '${entity}' AND ${key} = ${id}`)
    const nameOf = (index: number) => ({ entity: `location:${rows[index]?.entity}`, id: rows[index]?.id })
    await useDb(`DELETE FROM ${stream} WHERE ${dropped}`)
    await useDb(`INSERT INTO ${stream} FROM ${stream} WHERE ${doubled}`)
    await useDb(`UPDATE ${stream} SET "mentionTime" = "mentionTime" - INTERVAL 1 MILLISECOND WHERE ${stale}`)
    await useDb(`UPDATE ${stream} SET ${key} = 7 WHERE ${moved}`)
    const options = [...table, '--state', state]
    const buckets = await answer(...options)
    const csv = (of: Answer): string =>
      [Object.keys(of[0] ?? {}), ...of.map((row) => Object.values(row).map((cell) => cell ?? ''))]
        .map((cells) => cells.join(','))
        .join('\n')
    writeFileSync(path('buckets.csv'), csv(buckets))
    const told = await runCommand(auditCommand, ['--answer', path('buckets.csv'), '--json'])
    const named = await answer(...options, '--ids', JSON.parse(told.stdout).buckets.join(','))
    expect(named.map(({ entity, id, difference }) => ({ entity, id, difference }))).toEqual(
      expect.arrayContaining([
        { ...nameOf(0), difference: 'missing' },
        { ...nameOf(1), difference: 'doubled' },
        { ...nameOf(2), difference: 'stale' },
        { ...nameOf(3), difference: 'missing' },
        { ...nameOf(3), id: '7', difference: 'extra' },
      ]),
    )
    expect(named).toHaveLength(5)
    writeFileSync(path('answer.csv'), csv(named))
    expect(await audit(...options, '--repair', path('buckets.csv'))).toMatchObject({
      status: 78,
      stderr: expect.stringContaining('names buckets'),
    })
    const repaired = await audit(...options, '--repair', path('answer.csv'), '--folder', path('repair'))
    expect(repaired).toMatchObject({ status: 0, stdout: '', stderr: expect.stringContaining('To repair') })
    await useDb(readFileSync(path('repair/delete.sql'), 'utf8'))
    const before = JSON.parse(readFileSync(state, 'utf8'))
    const rewound = JSON.parse(readFileSync(path('repair/state.json'), 'utf8'))
    expect(rewound).not.toEqual(before)
    for (const file of ['state.json', 'singer-state.json'])
      expect(
        await runCommand(stateCommand, ['import', '--db', db, '--state', join(path('repair'), file)]),
      ).toMatchObject({ status: 0 })
    await sync()
    expect(await answer(...table, '--state', state)).toEqual([])
  })

  it('leaves out, and names, an entity that the state has not read or the service refuses', async () => {
    const more = path('more.json')
    writeFileSync(more, JSON.stringify(settings({ location_ids: locations, person_ids: ['500057', "no'body"] })))
    const { status, stdout, stderr } = await auditWith(more, ...table, '--state', state)
    expect(status).toBe(0)
    expect(stderr).toContain('person:500057 is left out: the state has not read it yet.')
    expect(stderr).toContain("person:no'body is left out: the service does not serve it completely.")
    expect(stdout).toContain('person:no_body (the service does not serve it completely)')
    expect(await useDb(stdout)).toEqual([])
  })
})

describe('feedback audit of feedback', () => {
  it.each([
    [['--ids', '17'], '--ids must be buckets of the answer, such as location:1034/2026-03'],
    [['--ids', "location:1'/2026-03"], '--ids must be buckets of the answer'],
    [['--window', 'week'], '--window must be one of'],
  ])('refuses %j', async (args, message) => {
    const { status, stderr } = await audit('--stream', 'comments', '--table', 'comments', ...args)
    expect(status).toBe(2)
    expect(stderr).toContain(message)
  })

  it('needs a config with entities', async () => {
    const none = path('none.json')
    writeFileSync(none, JSON.stringify(settings({})))
    const { status, stderr } = await auditWith(none, '--stream', 'comments', '--table', 'comments')
    expect(status).toBe(78)
    expect(stderr).toContain('No entity of comments can be compared. Name the entities in the config')
  })
})
