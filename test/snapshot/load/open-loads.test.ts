import * as O from 'fp-ts/Option'
import { describe, expect, it } from 'vitest'
import type { StreamInfo } from '../../../connector/cdk/message'
import { openLoads } from '../../../connector/snapshot/load/open-loads'
import type { LoadOptions } from '../../../connector/snapshot/load/target'
import type { Database } from '../../../connector/snapshot/store/database'
import { forgottenRecordsSql } from '../../../connector/snapshot/store/forgotten'
import { createStreamInfo, instantSchema, integerSchema, reviewsInfo } from '../../support/snapshot-messages'
import { at, listRows as list, rawSql, useTables } from '../../support/snapshot-tables'

const textSchema = { type: 'string' }
const thingsInfo = createStreamInfo('things', { id: integerSchema, at: instantSchema }, ['id'], 'at')
const withKey = (primaryKey: ReadonlyArray<string>, properties: object = {}): StreamInfo => ({
  ...createStreamInfo('things', { id: integerSchema, part: integerSchema, at: instantSchema, ...properties }, [], 'at'),
  primaryKey,
})
type Options = Partial<Parameters<typeof openLoads>[3]>

/** Opens streams in run 3, 5 s after 1970. */
const open = (db: Database, infos: ReadonlyArray<StreamInfo>, options: Options = {}) =>
  openLoads(db, 3, infos, { loadOptions: {}, history: false, forgets: false, ...options }, 5000)
const openThings = async (
  db: Database,
  info: StreamInfo = thingsInfo,
  options: LoadOptions = {},
  more: Options = {},
) => {
  const [load] = await open(db, [info], { loadOptions: { things: options }, ...more })
  if (load === undefined) throw new Error('nothing was opened')
  return load
}
const onEmptyFile = (body: (db: Database) => Promise<void>) => useTables([], body)
/** Adds rows with these values of some columns. */
const insert = (db: Database, columns: string, ...rows: ReadonlyArray<string>) =>
  db.run(
    `INSERT INTO things (${columns}, _airbyte_raw_id, _airbyte_generation_id)
     VALUES ${rows.map((values, i) => `(${values}, ${rawSql(i + 1)}, 0)`).join(', ')}`,
  )

describe('the rows of a table', () => {
  it('are counted as its stream is opened', async () => {
    await onEmptyFile(async (db) => {
      await openThings(db)
      await insert(db, 'id', '1', '2')
      await openThings(db)
      expect(await db.query('SELECT rows::INTEGER AS rows FROM _loads ORDER BY load DESC LIMIT 1')).toEqual([
        { rows: 2 },
      ])
    })
  })
})

describe('a stream is refused', () => {
  it.each<[string, StreamInfo, string]>([
    [
      'whose name is one of ours',
      { ...thingsInfo, name: '_things' },
      'Stream _things cannot be written: names that begin with ' +
        '_ are reserved for metadata tables. Correct the catalog.',
    ],
    [
      'whose key is not in its schema',
      { ...thingsInfo, primaryKey: ['id', 'other'] },
      'Stream things cannot be written: its key or cursor other ' +
        'is not an attribute of its schema. Correct the catalog.',
    ],
    [
      'whose cursor is not in its schema',
      { ...thingsInfo, cursor: O.some('time') },
      'Stream things cannot be written: its key or cursor time is not an attribute of its schema. Correct the catalog.',
    ],
  ])('%s', async (_, info, message) => {
    await onEmptyFile(async (db) => {
      await expect(open(db, [info])).rejects.toThrow(message)
      expect(await list(db, '_streams', 'stream')).toEqual([])
    })
  })

  it('whose name another one has in another case, in the file or in the run, and not again its own', async () => {
    await onEmptyFile(async (db) => {
      await openThings(db)
      await openThings(db)
      await open(db, [{ ...thingsInfo, name: 'things_' }])
      await expect(open(db, [{ ...thingsInfo, name: 'Things' }])).rejects.toThrow(
        'Stream Things cannot be written: the file has the stream things, whose name differs ' +
          'only in case, which names of tables cannot. Read it into its own file with --db.',
      )
      const others = ['others', 'OTHERS'].map((name) => ({ ...thingsInfo, name }))
      await expect(open(db, others)).rejects.toThrow('the file has the stream others, whose name differs only in case')
      expect(await list(db, '_streams', 'stream')).toEqual(['things', 'things_'])
    })
  })

  it('that begins a refresh which the file has left behind, and no other', async () => {
    await onEmptyFile(async (db) => {
      await openThings(db, thingsInfo, { generation: 5, minimum: 5 })
      await expect(openThings(db, thingsInfo, { generation: 4, minimum: 4 })).rejects.toThrow(
        'Stream things cannot be written: its refresh has the generation 4, but the file already has ' +
          'generation 5, so another connection has written it. Give each connection its own file with --db.',
      )
      for (const options of [
        { generation: 4, minimum: 0 },
        { generation: 5, minimum: 5 },
      ])
        expect((await openThings(db, thingsInfo, options)).target.generation).toBe(5)
    })
  })
})

describe('a stream is opened', () => {
  it('with the next number of a load, and has received nothing', async () => {
    await onEmptyFile(async (db) => {
      await db.run("INSERT INTO _loads (load, stream) VALUES (7, 'before')")
      const [others, things] = await open(db, [{ ...thingsInfo, name: 'others', cursor: O.none }, thingsInfo])
      expect(await list(db, '_loads WHERE run = 3', 'load', 'stream', 'status', 'epoch_ms(started)')).toEqual([
        ...['8 others running 5000', '9 things running 5000'],
      ])
      expect(await list(db, '_streams', 'stream', 'cursor')).toEqual(['others null', 'things at'])
      expect([others?.id, others?.cursor, others?.target.cursor]).toEqual([8, undefined, undefined])
      const { spool, ...load } = things ?? {}
      expect(load).toEqual({
        ...{ id: 9, stream: 'things', share: undefined, derivation: undefined, made: 0 },
        schema: JSON.stringify(thingsInfo.schema),
        table: {
          name: 'things',
          columns: [
            { name: 'id', type: 'BIGINT' },
            { name: 'at', type: 'TIMESTAMPTZ' },
          ],
          history: false,
        },
        target: { key: ['id'], cursor: 'at', generation: 0, minimumGeneration: 0, resetsState: false },
        ...{ activatesGeneration: false, cursor: { name: 'at', type: 'TIMESTAMPTZ' }, startedAt: 5000 },
        ...{ endedAt: undefined, status: 'running', records: 0, sourceRecords: undefined, state: undefined },
        hasChanges: false,
      })
      expect([spool?.count(), spool?.forgotten]).toEqual([0, undefined])
    })
  })

  it('with the rule by which records of someone forgotten are left out, where the file remembers anyone', async () => {
    await onEmptyFile(async (db) => {
      const [reviews] = await open(db, [reviewsInfo()], { forgets: true })
      expect(reviews?.spool.forgotten).toBe(forgottenRecordsSql('reviews'))
      expect(reviews?.spool.forgotten).toBeDefined()
    })
  })

  it('by what the file has of it, and not of another one', async () => {
    await onEmptyFile(async (db) => {
      const others = { ...thingsInfo, name: 'others' }
      const options = { mode: 'overwrite', generation: 5, minimum: 5 } as const
      await open(db, [others], { loadOptions: { others: options } })
      await openThings(db)
      expect(await list(db, '_streams', 'stream', 'generation', 'refreshing')).toEqual([
        ...['others 5 true', 'things 0 false'],
      ])
    })
  })

  it('with a history from the first run on that asks for one', async () => {
    const hasHistory = (db: Database) => list(db, "duckdb_tables() WHERE table_name = '_history_things'", 'count(*)')
    await onEmptyFile(async (db) => {
      const found: unknown[] = []
      for (const history of [false, true, false]) {
        const { table } = await openThings(db, thingsInfo, {}, { history })
        found.push([table.history, ...(await hasHistory(db))])
      }
      expect(found).toEqual([
        [false, '0'],
        [true, '1'],
        [true, '1'],
      ])
    })
  })

  it('under the names of its columns, which may differ from those of its attributes', async () => {
    const info = createStreamInfo(
      'things',
      { ID: integerSchema, id: integerSchema, AT: integerSchema, at: textSchema },
      ['id'],
      'at',
    )
    await onEmptyFile(async (db) => {
      const { target, cursor } = await openThings(db, info)
      expect([target.key, target.cursor, cursor?.attribute]).toEqual([['id'], 'at', 'at'])
      const [stream] = await db.query('SELECT primary_key, cursor FROM _streams')
      expect(stream).toEqual({ primary_key: [expect.stringMatching(/^id__/)], cursor: cursor?.name })
      expect(cursor?.name).toMatch(/^at__/)
    })
  })
})

describe('a key', () => {
  it('is refused where it is another one', async () => {
    await onEmptyFile(async (db) => {
      await openThings(db, withKey(['id']))
      await expect(openThings(db, withKey(['id', 'part']))).rejects.toThrow(
        'Stream things cannot be written: its key is id, part now, ' +
          'and was id in the file. Read it into another file with --db.',
      )
    })
  })

  it.each<[string, object]>([
    ['of its attribute', {}],
    ['of an attribute whose column has another name', { ID: integerSchema }],
  ])('is none where it is the same, though rows have no value of it: %s', async (_, first) => {
    const properties = { ...first, id: integerSchema, part: integerSchema, at: instantSchema }
    const info = createStreamInfo('things', properties, ['id'], 'at')
    await onEmptyFile(async (db) => {
      await openThings(db, info)
      await insert(db, 'part, "at"', `1, ${at(1)}`)
      await openThings(db, info)
      expect(await list(db, 'things', 'part')).toEqual(['1'])
    })
  })
})
