import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { personConventions } from '../../connector/cdk/program/exit'
import { replayCommand } from '../../connector/cli/replay'
import { snapshotCommand } from '../../connector/cli/snapshot'
import { runCommand } from '../support/run-command'

const folder = mkdtempSync(join(tmpdir(), 'foreign-'))
afterAll(() => rmSync(folder, { recursive: true }))
const path = (name: string) => join(folder, name)

const toLines = (messages: ReadonlyArray<unknown>) => messages.map((message) => JSON.stringify(message)).join('\n')
const catalogOf = (stream: object) => ({
  streams: [{ stream: { json_schema: {}, ...stream }, sync_mode: 'incremental', destination_sync_mode: 'append' }],
})
const schemaOf = (stream: string, key: ReadonlyArray<string>, type: string) => ({
  type: 'SCHEMA',
  stream,
  key_properties: key,
  schema: { properties: { id: { type }, modifiedTime: { type: 'string', format: 'date-time' } } },
})
const tools = "use Airbyte's destination-duckdb, Meltano's target-duckdb or dlt."

describe('messages of another source', () => {
  it.each<[string, ReadonlyArray<unknown>, object | undefined, string]>([
    [
      'a record of Airbyte',
      [{ type: 'RECORD', record: { stream: 'users', data: { id: 1 }, emitted_at: 1 } }],
      undefined,
      'The stream users comes from another source: this connector has no stream users.',
    ],
    [
      'a catalog with another stream',
      [],
      catalogOf({ name: 'users' }),
      'The stream users comes from another source: our streams have no namespace and different names.',
    ],
    [
      'a catalog with a namespace',
      [],
      catalogOf({ name: 'reviews', namespace: 'shop' }),
      'The stream shop.reviews comes from another source: our streams have no namespace and different names.',
    ],
    [
      'a schema of Singer',
      [schemaOf('users', ['id'], 'integer')],
      undefined,
      'The stream users comes from another source: this connector has no stream users.',
    ],
    [
      'a stream with our name and another key',
      [schemaOf('reviews', ['modifiedTime'], 'integer')],
      undefined,
      'The stream reviews comes from another source: the key of our reviews is id, not modifiedTime.',
    ],
    [
      'a stream with our name and a key of another type',
      [schemaOf('reviews', ['id'], 'string')],
      undefined,
      'The stream reviews comes from another source: id of our reviews is integer.',
    ],
    [
      'a state of all streams',
      [{ type: 'STATE', state: { type: 'LEGACY', data: { a: 1 } } }],
      undefined,
      'Line 1 of the input is a STATE of all streams or of none',
    ],
  ])('are refused by name before anything is written: %s', async (name, messages, catalog, problem) => {
    const [input, db, given] = [path(`${name}.jsonl`), path(`${name}.duckdb`), path(`${name}.json`)]
    writeFileSync(input, toLines(messages))
    writeFileSync(given, JSON.stringify(catalog ?? {}))
    const args = [input, '--db', db, ...(catalog === undefined ? [] : ['--catalog', given])]
    for (const command of [snapshotCommand, replayCommand]) {
      const { status, stderr } = await runCommand(command, args, { fail: personConventions.reportFailure })
      expect([status, stderr]).toEqual([78, expect.stringContaining(problem)])
      if (!problem.startsWith('Line')) expect(stderr).toContain(tools)
      expect(existsSync(db)).toBe(false)
    }
  })

  it('are not written, where ours came before them', async () => {
    const [input, db] = [path('both.jsonl'), path('both.duckdb')]
    const own = { type: 'RECORD', record: { stream: 'reviews', data: { id: 1 }, emitted_at: 1 } }
    writeFileSync(
      input,
      `${toLines([own])}\n${' '.repeat(200_000)}\n${toLines([schemaOf('users', ['id'], 'integer')])}`,
    )
    const { status } = await runCommand(snapshotCommand, [input, '--db', db], { fail: personConventions.reportFailure })
    // A line of Singer in an Airbyte input is neither an Airbyte message nor one of ours.
    expect(status).toBe(1)
  })

  it('that refer to records in other files are refused instead of lost', async () => {
    const input = path('batch.jsonl')
    writeFileSync(input, toLines([schemaOf('reviews', ['id'], 'integer'), { type: 'BATCH', stream: 'reviews' }]))
    const { status, stderr } = await runCommand(snapshotCommand, [input, '--db', path('batch.duckdb')], {
      fail: personConventions.reportFailure,
    })
    expect([status, stderr]).toEqual([78, expect.stringMatching(/BATCH/)])
  })
})
