import fc from 'fast-check'
import * as E from 'fp-ts/Either'
import { expect, it } from 'vitest'
import type { Message } from '../../../connector/cdk/message'
import { consumeMessages } from '../../../connector/cdk/source-program'
import { sourceFormat } from '../../../connector/config/source'
import { createSource } from '../../../connector/runtime/source'
import { type FaultRule, parseFaultList } from '../../../connector/sandbox/faults/plan'
import type { Sandbox } from '../../../connector/sandbox/start'
import { hashContent } from '../../../connector/snapshot/diff'
import { createSnapshotWriter, type SnapshotWriter } from '../../../connector/snapshot/load/writer'
import { quoteIdentifier, type Snapshot } from '../../../connector/snapshot/store/database'
import { readSnapshotState } from '../../../connector/snapshot/store/metadata'
import { attributeOf, type ColumnType, listStreamTables } from '../../../connector/snapshot/store/tables'
import { createTestIo, toInput } from '../../support/command-io'
import { draws } from '../../support/draws'
import { startTestSandbox } from '../../support/sandbox'
import { emittedAt, openMemorySnapshot } from '../../support/snapshot-messages'

const tries = draws(2)

/** Attributes of a review that may be left out or hashed: whole parts, members of parts, and texts. */
const hiddenPaths = [
  ...['surveyBarCode', 'visitRecordId', 'location.name', 'provider.npi', 'taskDetails.ownerEmail'],
  ...['contents.response', 'contents.sentiments.opinion', 'contents.liabilities.justification'],
]
const droppedPaths = [...hiddenPaths, 'rating', 'engagements', 'taskDetails', 'contents.sentiments', 'contents']

const caseArbitrary = fc.record({
  seed: fc.integer({ min: 1, max: 1_000_000 }),
  reviews: fc.integer({ min: 2, max: 5 }),
  attributes: fc.constantFrom('as declared', 'unknown', 'nulls'),
  onUnknown: fc.constantFrom('keep', 'drop', 'fail'),
  deletes: fc.constantFrom('separate', 'tombstones'),
  additionalFields: fc.subarray(['brand', 'visitRecordId']),
  drop: fc.subarray(droppedPaths, { maxLength: 3 }),
  hash: fc.subarray(hiddenPaths, { maxLength: 3 }),
  churn: fc.record({
    change: fc.integer({ min: 0, max: 3 }),
    delete: fc.integer({ min: 0, max: 2 }),
    add: fc.integer({ min: 0, max: 2 }),
    restore: fc.integer({ min: 0, max: 1 }),
  }),
})
type Case = typeof caseArbitrary extends fc.Arbitrary<infer A> ? A : never

const faultsOf = ({ attributes }: Case): ReadonlyArray<FaultRule> => {
  if (attributes === 'as declared') return []
  const faults = parseFaultList(Array.from({ length: 200 }, (_, n) => `${n + 1}=${attributes}`).join(','))
  if (E.isLeft(faults)) throw new Error(JSON.stringify(faults.left))
  return faults.right
}

const openSource = ({ url, accessToken }: Sandbox, drawn: Case) => {
  const hash = drawn.hash.filter((path) => !drawn.drop.some((dropped) => path.startsWith(dropped)))
  const decoded = sourceFormat.decode({
    base_url: url,
    credentials: { auth_type: 'access_token', access_token: accessToken },
    start_date: '2000-01-01T00:00:00Z',
    page_size: 10,
    on_unknown_attribute: drawn.onUnknown,
    deletes: drawn.deletes,
    additional_fields: drawn.additionalFields,
    privacy: {
      drop: drawn.drop.map((path) => `export.${path}`),
      hash: hash.map((path) => `export.${path}`),
      hash_key: 'a key of this test',
    },
  })
  const source = E.isLeft(decoded) ? decoded : createSource(decoded.right.config, { proxyVariables: {} })
  if (E.isLeft(source)) throw new Error(source.left.message)
  return source.right
}

const now = () => emittedAt

/** A value of a record as a column of a type must hold it, and the SQL that reads it from there. */
const readValue = (type: ColumnType, value: unknown): unknown => {
  if (value === null || value === undefined) return null
  return type === 'TIMESTAMPTZ' ? Date.parse(String(value)) : value
}
const valueSql = (type: ColumnType, column: string): string => {
  if (type === 'TIMESTAMPTZ') return `epoch_ms(${column})`
  return type === 'JSON' ? column : `to_json(${column})`
}

/** The rows of every table that come from no record, value by value. */
const listForeignRows = async ({ db }: Snapshot, emitted: ReadonlyMap<string, ReadonlyArray<string>>) => {
  const foreign: string[] = []
  for (const { name, columns } of await listStreamTables(db)) {
    const records = new Set(
      (emitted.get(name) ?? []).map((text) => {
        const record = JSON.parse(text)
        return JSON.stringify(columns.map((column) => readValue(column.type, record[attributeOf(column) ?? ''])))
      }),
    )
    const values = columns.map(({ name: column, type }) => `${valueSql(type, quoteIdentifier(column))}::VARCHAR`)
    const rows = await db.query(`SELECT [${values.join(', ')}] AS texts FROM ${quoteIdentifier(name)}`)
    for (const { texts } of rows) {
      const row = JSON.stringify(
        (texts as Array<string | null>).map((text) => (text === null ? null : JSON.parse(text))),
      )
      if (!records.has(row)) foreign.push(`${name} ${row}`)
    }
  }
  return foreign
}

/**
 * Loads a run into `batched`, which makes the rows of reviews itself, and each record of another run into `single`, one
 * at a time.
 */
const loadBoth = async (
  sandbox: Sandbox,
  drawn: Case,
  { batched, single, emitted }: { batched: Snapshot; single: Snapshot; emitted: Map<string, string[]> },
): Promise<void> => {
  const load = async (
    snapshot: Snapshot,
    derives: boolean,
    toConsumer: (writer: SnapshotWriter) => SnapshotWriter['write'],
  ) => {
    const source = openSource(sandbox, drawn)
    const catalog = source.streams.map(({ name }) => ({
      name,
      syncMode: 'incremental' as const,
      attributes: { _tag: 'None' as const },
    }))
    const writer = await createSnapshotWriter(snapshot, { now })
    const state = await readSnapshotState(snapshot)
    const io = createTestIo(toInput(''), async () => undefined)
    await consumeMessages(io, source, { catalog, state, derives }, [toConsumer(writer)])
    await writer.finish()
    await source.close()
  }
  const writeSingly = (writer: SnapshotWriter) => async (message: Message) => {
    if (message._tag !== 'Records') return writer.write(message)
    const texts = emitted.get(message.stream) ?? []
    emitted.set(message.stream, texts)
    for (const row of message.rows) {
      texts.push(Buffer.from(row.json).toString())
      await writer.write({ ...message, at: emittedAt, rows: [row] })
      await writer.write({ _tag: 'Waiting', stream: message.stream, until: 0 })
    }
  }
  await load(single, false, writeSingly)
  await load(
    batched,
    true,
    (writer) => (message) => writer.write('at' in message ? { ...message, at: emittedAt } : message),
  )
}

/** The states include the times of the runs, of which there are two. */
const hashTables = async (snapshot: Snapshot) =>
  (await hashContent(snapshot)).tables.filter(({ table }) => table !== '_state')

it('the tables of a run are those of its records loaded one by one, for every config that shapes them', async () => {
  let rows = 0
  await fc.assert(
    fc.asyncProperty(caseArbitrary, async (drawn) => {
      const sandbox = await startTestSandbox({
        seed: drawn.seed,
        reviews: drawn.reviews,
        until: Date.now() - 7_200_000,
        faults: faultsOf(drawn),
      })
      const emitted = new Map<string, string[]>()
      const [batched, single] = [await openMemorySnapshot(), await openMemorySnapshot()]
      try {
        for (const step of [undefined, drawn.churn]) {
          if (step !== undefined) await sandbox.churn(step)
          await loadBoth(sandbox, drawn, { batched, single, emitted })
          const expected = await hashTables(single)
          expect(await hashTables(batched)).toEqual(expected)
          expect(await listForeignRows(batched, emitted)).toEqual([])
          rows += expected.reduce((sum, table) => sum + table.rows, 0)
        }
      } finally {
        batched.db.close()
        single.db.close()
        await sandbox.close()
      }
    }),
    { ...tries, endOnFailure: true },
  )
  expect(rows).toBeGreaterThan(tries.numRuns * 10)
})
