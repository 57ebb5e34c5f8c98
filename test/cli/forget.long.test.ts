import { spawn } from 'node:child_process'
import { copyFileSync, existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { auditCommand } from '../../connector/cli/audit'
import { forgetCommand } from '../../connector/cli/forget'
import { syncCommand } from '../../connector/cli/sync'
import { verifyCommand } from '../../connector/cli/verify'
import type { Sandbox } from '../../connector/sandbox/start'
import { codeBlocks } from '../support/doc-blocks'
import { drawCount } from '../support/draws'
import { newTempPath, writeTempFile } from '../support/files'
import { killOnceWritten, programPath, runProgram, startProgram } from '../support/program'
import { runCommand } from '../support/run-command'
import { sandboxConfig, startTestSandbox } from '../support/sandbox'
import { useDatabase } from '../support/snapshot-messages'

let sandbox: Sandbox
let config: string
/** A file that holds everything of the service, with older versions. */
let synced: string
beforeAll(async () => {
  sandbox = await startTestSandbox({ reviews: 300 })
  config = writeTempFile(sandboxConfig(sandbox))
  synced = newTempPath('duckdb')
  const { status, stderr } = await runCommand(syncCommand, ['--config', config, '--db', synced, '--history'])
  expect(status, stderr).toBe(0)
  return () => sandbox.close()
})

const copySynced = (): string => {
  const path = newTempPath('duckdb')
  copyFileSync(synced, path)
  return path
}

type Person = { readonly id: string; readonly visit: string; readonly words: string }

/** Someone who came to a location of the config and wrote something, so that every kind of table has rows of them. */
const findPerson = (path: string): Promise<Person> =>
  useDatabase(path, 'read', async (db) => {
    const [row] = await db.query(`
      SELECT reviews.id::VARCHAR AS id, "visitRecordId" AS visit, comment.comment AS words
      FROM reviews JOIN transparency_reviews ON "documentId" = reviews.id, comments AS comment
      WHERE "visitRecordId" <> '' AND comment.id = reviews.id * 10 + 3 AND comment.comment <> ''
      ORDER BY reviews.id LIMIT 1`)
    expect(row).toBeDefined()
    return { id: String(row?.id), visit: String(row?.visit), words: String(row?.words) }
  })

/** How many rows name the review, by table; by the text of the rows. */
const countRows = ({ id }: Person, path: string): Promise<Readonly<Record<string, number>>> =>
  useDatabase(path, 'read', async (db) => {
    const counts: Record<string, number> = {}
    for (const { name } of await db.query(
      `
        SELECT table_name AS name
        FROM duckdb_tables()
        WHERE NOT starts_with(table_name, '_') OR starts_with(table_name, '_history')`,
    )) {
      const n = Number(
        await db.scalar(
          `SELECT count(*) FROM "${name}" AS t WHERE regexp_matches(t::VARCHAR, '(^|[^0-9])${id}3?([^0-9]|$)')`,
        ),
      )
      if (n > 0) counts[String(name)] = n
    }
    return counts
  })

const holdAudit = async (path: string, stream: string, ...more: ReadonlyArray<string>) => {
  const { status, stdout, stderr } = await runCommand(auditCommand, [
    ...['--config', config, '--stream', stream, '--dialect', 'duckdb', '--table', stream, ...more],
  ])
  expect(status, stderr).toBe(0)
  return { stderr, rows: await useDatabase(path, 'read', (db) => db.query(stdout)) }
}

describe('feedback forget', () => {
  it('erases a person who never comes back, and nothing calls them lost', async () => {
    const path = copySynced()
    const gone = await findPerson(path)
    expect(Object.keys(await countRows(gone, path))).toEqual(
      expect.arrayContaining(['reviews', 'review_contents', 'comments', 'transparency_reviews']),
    )
    const { status, stdout, stderr } = await runCommand(forgetCommand, [
      '--db',
      path,
      '--visit-record',
      gone.visit,
      '--json',
    ])
    expect(status, stderr).toBe(0)
    expect(JSON.parse(stdout).removed.map(({ table }: { table: string }) => table)).toEqual(
      expect.arrayContaining(['reviews', 'review_contents', 'comments', 'transparency_reviews']),
    )
    for (const word of [gone.words, gone.visit, gone.id]) expect(stdout).not.toContain(word)
    expect(await countRows(gone, path)).toEqual({})

    for (const more of [[], ['--full-refresh'], ['--service-moved']]) {
      const again = await runCommand(syncCommand, ['--config', config, '--db', path, ...more])
      expect(again.status, again.stderr).toBe(0)
      expect(await countRows(gone, path)).toEqual({})
    }
    const others = await useDatabase(path, 'read', (db) => db.scalar('SELECT count(*) FROM reviews'))
    expect(others).toBe((await sandbox.truth()).reviews.length - 1)

    const verified = await runCommand(verifyCommand, ['--db', path, '--config', config, '--json'])
    expect(verified.status, verified.stdout).toBe(0)
    const checks: ReadonlyArray<{ name: string; failures: number; examples: string[] }> = JSON.parse(verified.stdout)
    expect(checks.find(({ name }) => name === 'forgotten on purpose')).toMatchObject({
      failures: 1,
      examples: [expect.stringContaining(`id ${gone.id}`)],
    })

    for (const stream of ['reviews', 'review_contents', 'comments', 'transparency_reviews']) {
      const { stderr: told, rows } = await holdAudit(path, stream, '--forgotten', path)
      expect([stream, rows, told]).toEqual([
        stream,
        [],
        expect.stringMatching(/^\d of the rows that the service has were forgotten on purpose/),
      ])
      expect((await holdAudit(path, stream)).rows, stream).not.toEqual([])
    }
    // A table that still has the person is reported.
    expect((await holdAudit(synced, 'reviews', '--forgotten', path)).rows).toMatchObject([{ difference: 'extra' }])
  })

  it('prints a receipt for people', async () => {
    const path = copySynced()
    const gone = await findPerson(path)
    const { stdout } = await runCommand(forgetCommand, ['--db', path, '--review', gone.id])
    expect(stdout).toMatch(/^Forgotten at 2\S+Z, by SHA-256 of the id:\n {2}[0-9a-f]{64}\n/)
    expect(stdout).toMatch(/^reviews +1 +0$/m)
    expect(stdout).toContain(
      'Not searched, because they hold no review id that is known ' +
        'here: categories, entity_ratings, locations, providers, questions, sources.',
    )
    const again = await runCommand(forgetCommand, ['--db', path, '--review', `${gone.id},1`])
    expect([again.status, again.stdout]).toEqual([0, expect.stringContaining('No table had any of their rows.')])
    for (const word of [gone.words, gone.visit, gone.id]) expect(stdout + again.stdout).not.toContain(word)
  })

  it.each<[ReadonlyArray<string>, RegExp]>([
    [[], /needs --review or --visit-record/],
    [['--review', ' , '], /needs --review or --visit-record/],
    [
      ['--review', '12,abc'],
      /--review takes ids of reviews, which are integers of at most 19 digits; number 2 is not one/,
    ],
    [['--review', '99999999999999999999'], /number 1 is not one\. Nothing was changed/],
  ])('refuses %j', async (args, message) => {
    const { status, stderr } = await runProgram('feedback', ['forget', '--db', synced, ...args])
    expect([status, stderr]).toEqual([2, expect.stringMatching(message)])
    expect(stderr).not.toContain('abc')
  })

  it('says that another process uses the file, and changes nothing', async () => {
    const path = copySynced()
    await useDatabase(path, 'read', async () => {
      const { status, stderr } = await runProgram('feedback', ['forget', '--db', path, '--review', '1'])
      expect([status, stderr]).toEqual([75, expect.stringMatching(/is in use by .*--wait 10m waits/)])
    })
    expect(readFileSync(path).equals(readFileSync(synced))).toBe(true)
  })

  it('leaves the old file where the disk is full', async () => {
    const path = copySynced()
    const gone = await findPerson(path)
    const shell = `trap '' XFSZ; ulimit -f 200; exec "$0" "$@"`
    const child = spawn('bash', [
      '-c',
      shell,
      process.execPath,
      programPath('feedback'),
      ...['forget', '--db', path, '--review', gone.id],
    ])
    const errors: Buffer[] = []
    child.stderr.on('data', (chunk: Buffer) => errors.push(chunk))
    const status = await new Promise((resolve) => child.on('close', resolve))
    expect([status, Buffer.concat(errors).toString()]).toEqual([
      75,
      expect.stringContaining(`${path} cannot grow: the disk is full`),
    ])
    expect((await countRows(gone, path)).reviews).toBe(1)
    expect(filesBeside(path)).toEqual([basename(path)])
    expect((await runProgram('feedback', ['forget', '--db', path, '--review', gone.id])).status).toBe(0)
  })

  it('leaves the old file or the new one whenever it is killed, and finishes when it is run again', async () => {
    const gone = await findPerson(synced)
    const args = (path: string) => ['forget', '--db', path, '--visit-record', gone.visit]
    const erased = copySynced()
    expect((await runProgram('feedback', args(erased))).status).toBe(0)
    const bytes = statSync(erased).size
    const left = new Set<boolean>()
    const kills = drawCount(2)
    for (let kill = 0; kill < kills; kill += 1) {
      const path = copySynced()
      await killOnceWritten(startProgram('feedback', args(path)), `${path}.forget`, (bytes * kill) / kills)
      const counts = await countRows(gone, path)
      expect([0, 4], JSON.stringify(counts)).toContain(
        ['reviews', 'review_contents', 'comments', 'transparency_reviews'].filter((name) => name in counts).length,
      )
      left.add('reviews' in counts)
      expect((await runProgram('feedback', args(path))).status).toBe(0)
      expect(await countRows(gone, path)).toEqual({})
      expect(filesBeside(path)).toEqual([basename(path)])
      expect((await runCommand(verifyCommand, ['--db', path])).status).toBe(0)
    }
    expect(left.has(true)).toBe(true)
  })
})

describe('docs/erasure.md', () => {
  it('has statements that remove from a warehouse what forget removes from a file', async () => {
    const [byHand, path] = [copySynced(), copySynced()]
    const gone = await findPerson(synced)
    const [sql = ''] = codeBlocks('erasure.md', 'sql')
    await useDatabase(byHand, 'change', (db) =>
      db.run(sql.replace('9007199254742043', gone.id).replace('VR-20000071', gone.visit)),
    )
    expect((await runCommand(forgetCommand, ['--db', path, '--review', gone.id])).status).toBe(0)
    const count = (file: string) =>
      useDatabase(file, 'read', async (db) => {
        const streams = (await db.query('SELECT stream FROM _streams ORDER BY stream')).map(({ stream }) =>
          String(stream),
        )
        return Promise.all(streams.map(async (stream) => [stream, await db.scalar(`SELECT count(*) FROM "${stream}"`)]))
      })
    expect(await count(byHand)).toEqual(await count(path))
    expect(await count(byHand)).not.toEqual(await count(synced))
  })
})

const filesBeside = (path: string): ReadonlyArray<string> =>
  readdirSync(dirname(path)).filter((name) => name.startsWith(basename(path)) && existsSync(path))

it('takes ids from several lines', async () => {
  const { status, stdout } = await runCommand(forgetCommand, [
    ...['--db', copySynced(), '--review', '1\n2, 3\n', '--visit-record', 'VR-1\nVR-2\n', '--json'],
  ])
  expect(status).toBe(0)
  const { asked } = JSON.parse(stdout)
  expect([asked.reviews.length, asked.visit_records.length]).toEqual([3, 2])
})
