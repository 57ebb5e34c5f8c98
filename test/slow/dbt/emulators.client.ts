import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseExactJson, printExactJson } from '../../../connector/cdk'
import { auditCommand } from '../../../connector/cli/audit'
import { type Sandbox, startSandbox } from '../../../connector/sandbox/start'
import { drawSeed } from '../../support/draws'
import { createJsonFolder } from '../../support/files'
import { airbyteLines, configureStreams, recordTexts } from '../../support/lines'
import { runProgram } from '../../support/program'
import { random } from '../../support/random'
import { runCommand } from '../../support/run-command'
import { sandboxConfig } from '../../support/sandbox'
import {
  type Cells,
  type ContentDamage,
  compareFeedback,
  compareGroups,
  contentDamages,
  type Feedback,
  feedbackDamages,
  groupFeedback,
  has,
  type ServedRecord,
  windowOf,
} from './emulated-damages'
import {
  type ColumnKind,
  type Columns,
  type EmulatedAnswers,
  type EmulatedPlan,
  type Emulator,
  emulators,
} from './emulators'
import { type Postgres, startPostgres } from './postgres'

const seed = drawSeed
const bucketCount = 256

type Table = ReadonlyArray<Cells>

const files = createJsonFolder()
let sandbox: Sandbox
let postgres: Postgres
/** What the service has of each stream. */
let served: Readonly<Record<string, ReadonlyArray<ServedRecord>>>

const streams = [
  'reviews',
  'review_sentiments',
  'comments',
  'transparency_reviews',
  'locations',
  'providers',
  'categories',
  'questions',
]

beforeAll(async () => {
  sandbox = await startSandbox({ reviews: 400 })
  postgres = await startPostgres()
  const location_ids = Array.from({ length: 8 }, (_, i) => String(1001 + i))
  const config = files.put('config.json', sandboxConfig(sandbox, { allow_http: true, entities: { location_ids } }))
  const [catalog] = airbyteLines((await runProgram('source-feedback', ['discover', '--config', config])).stdout)
  const chosen = catalog?.catalog?.streams.filter(({ name }) => streams.includes(name)) ?? []
  const selected = files.put('catalog.json', configureStreams(chosen, 'full_refresh'))
  const { stdout } = await runProgram('source-feedback', ['read', '--config', config, '--catalog', selected])
  served = Object.fromEntries(
    streams.map((stream) => [stream, recordTexts(stdout, stream).map((text) => parseExactJson(text) as ServedRecord)]),
  )
})
afterAll(async () => {
  await sandbox?.close()
  await postgres?.stop()
  files.remove()
})

const print = async (emulator: Emulator, stream: string, ...more: ReadonlyArray<string>): Promise<string> => {
  const args = ['--config', `${files.path}/config.json`, '--stream', stream, '--table', stream]
  const { status, stdout, stderr } = await runCommand(auditCommand, [...args, '--dialect', emulator.dialect, ...more])
  if (status !== 0) throw new Error(stderr)
  return stdout
}

/** The same of each stream, one after the other: they share a sandbox. */
const printAll = async (
  emulator: Emulator,
  stream: string,
  options: ReadonlyArray<ReadonlyArray<string>>,
): Promise<ReadonlyArray<string>> => {
  const statements: string[] = []
  for (const each of options) statements.push(await print(emulator, stream, ...each))
  return statements
}

/** Some columns of all answers. */
const shorten = (answers: EmulatedAnswers, ...columns: ReadonlyArray<number>): EmulatedAnswers =>
  answers.map((ofCase) => ofCase.map((rows) => rows.map((row) => columns.flatMap((at) => row.slice(at).slice(0, 1)))))

const bucketOf = (id: string): number =>
  Number(BigInt(`0x${createHash('md5').update(id).digest('hex').slice(0, 15)}`) % BigInt(bucketCount))

const drawer = () => {
  const next = random(seed)
  return (below: number): number => Math.floor(next() * below)
}

const run = (emulator: Emulator, plan: EmulatedPlan): Promise<EmulatedAnswers> => emulator.run(plan, files, postgres)

const reviewColumns: Columns = [
  ['id', 'whole'],
  ['modifiedTime', 'instant'],
  ['surveyBarCode', 'text'],
  ['location', 'json'],
  ['provider', 'json'],
  ['source', 'json'],
  ['avatar', 'json'],
  ['mentionTime', 'instant'],
  ['rating', 'decimal'],
  ['reviewScore', 'decimal'],
  ['contents', 'json'],
  ['taskDetails', 'json'],
  ['visitRecordId', 'text'],
  ['brand', 'json'],
  ['engagements', 'json'],
]
const sentimentColumns: Columns = [
  ['reviewId', 'whole'],
  ['reviewModifiedTime', 'instant'],
  ['contentId', 'whole'],
  ['id', 'whole'],
  ['feature', 'text'],
  ['opinion', 'text'],
  ['score', 'decimal'],
  ['category', 'text'],
  ['subCategory', 'text'],
  ['tonality', 'text'],
]

/** Decimals as columns of 9 places have them. */
const toCell = (value: unknown, kind: ColumnKind): string | null => {
  if (value === null || value === undefined) return null
  if (kind === 'decimal') return Number(value).toFixed(9)
  return kind === 'json' ? printExactJson(value) : String(value)
}
const toTable = (records: ReadonlyArray<ServedRecord>, columns: Columns): Table =>
  records.map((record) => columns.map(([name, kind]) => toCell(record[name], kind)))

const here = emulators
  .filter(({ isHere }) => isHere)
  .map((emulator) => [emulator.dialect, emulator.name, emulator] as const)

describe.each(here)('%s on %s', (_dialect, _name, emulator) => {
  const title = (what: string): string => `${what} with ${emulator.damages} random damages (seed ${seed})`

  it(title('finds which versions of reviews differ'), async () => {
    /** The same also as text, without zone, in UTC and in Asia/Kolkata, and in milliseconds. */
    const columns: Columns = [
      ['id', 'whole'],
      ['digits', 'text'],
      ['modifiedTime', 'instant'],
      ['naive', 'naive'],
      ['kolkata', 'naive'],
      ['told', 'text'],
      ['millis', 'whole'],
    ]
    const toRow = (id: string, time: string): Cells => {
      const naive = (ahead: number) =>
        new Date(Date.parse(time) + ahead).toISOString().replace('T', ' ').replace('Z', '')
      return [id, id, time, naive(0), naive(5.5 * 3_600_000), time, String(Date.parse(time))]
    }
    const others = [
      ['--id-column', 'digits', '--id-type', 'text'],
      ['--version-column', 'naive', '--version-type', 'timestamp'],
      ['--version-column', 'kolkata', '--version-type', 'timestamp', '--time-zone', 'Asia/Kolkata'],
      ['--version-column', 'told', '--version-type', 'text'],
      ['--version-column', 'millis', '--version-type', 'millis'],
    ]
    const buckets = ['--buckets', String(bucketCount)]
    const statements = await printAll(emulator, 'reviews', [
      buckets,
      ['--buckets', '1', '--ids', '0'],
      ...others.map((columns) => [...buckets, ...columns]),
    ])
    const rows = (served.reviews ?? []).map(({ id, modifiedTime }) => toRow(String(id), String(modifiedTime)))
    const draw = drawer()
    const damages = Array.from({ length: emulator.damages }, (_, trial) => {
      const [index, other] = [draw(rows.length), draw(400)]
      const [id, , time] = rows[index] as readonly [string, string, string]
      const earlier = toRow(id, new Date(Date.parse(time) - 1 - other).toISOString())
      return [
        { difference: 'missing', id, table: rows.filter((_, at) => at !== index) },
        { difference: 'doubled', id, table: [...rows, rows[index] as Cells] },
        { difference: 'stale', id, table: rows.map((row, at) => (at === index ? earlier : row)) },
        { difference: 'extra', id: String(1 + other), table: [...rows, toRow(String(1 + other), time)] },
      ][trial % 4] as { readonly difference: string; readonly id: string; readonly table: Table }
    })
    const answers = await run(emulator, {
      statements,
      cases: [
        { table: 'reviews', columns, rows, asked: statements.map((_, place) => place) },
        ...damages.map(({ table }) => ({ table: 'reviews', columns, rows: table, asked: [0, 1] })),
      ],
    })
    expect(shorten(answers, 0, 1)).toEqual([
      statements.map(() => []),
      ...damages.map(({ id, difference }) => [[[String(bucketOf(id)), difference]], [[id, difference]]]),
    ])
  })

  it.each([
    ['comments', 'id', 1],
    ['transparency_reviews', 'documentId', 0.25],
  ])(`finds which of %s differ, by %s, with random damages (seed ${seed})`, async (stream, key, share) => {
    const columns: Columns = [
      ['entityType', 'text'],
      ['entityId', 'text'],
      [key, 'whole'],
      ['mentionTime', 'instant'],
    ]
    const toCells = ({ entity, id, time }: Feedback): Cells => [
      ...entity.split(':'),
      id,
      time === null ? null : new Date(time).toISOString(),
    ]
    const expected = (served[stream] ?? []).map((record) => ({
      entity: `${record.entityType}:${record.entityId}`,
      id: String(record[key]),
      time: Date.parse(String(record.mentionTime)),
    }))
    expect(expected.length).toBeGreaterThan(30)
    const draw = drawer()
    const damaged = Array.from({ length: Math.ceil(emulator.damages * share) }, (_, trial) => {
      const index = draw(expected.length)
      const damage = feedbackDamages[trial % feedbackDamages.length] as (typeof feedbackDamages)[number]
      return expected.flatMap((row, at) => (at === index ? damage(row, draw) : [row]))
    })
    const tables: ReadonlyArray<ReadonlyArray<Feedback>> = [expected, ...damaged]
    const windows = new Set(tables.flatMap((table) => table.map((row) => windowOf(row, 'month'))))
    const statements = await printAll(emulator, stream, [[], ['--window', 'year'], ['--ids', [...windows].join(',')]])
    const answers = await run(emulator, {
      statements,
      cases: tables.map((table) => ({ table: stream, columns, rows: table.map(toCells), asked: [0, 1, 2] })),
    })
    const found = answers.map(([months = [], years = [], rows = []]) => [
      ...[months, years].map((answer) => answer.map((row) => row.slice(0, 2))),
      rows.map((row) => row.slice(0, 3)),
    ])
    expect(found).toEqual(
      tables.map((table) => [
        ...(['month', 'year'] as const).map((window) =>
          compareGroups(groupFeedback(expected, window), groupFeedback(table, window)),
        ),
        compareFeedback(expected, table),
      ]),
    )
  })

  it.each([
    ['locations', 'whole', ['name']],
    ['providers', 'whole', ['name', 'npi']],
    ['categories', 'text', []],
    ['questions', 'text', []],
  ] as const)(`finds which %s differ (seed ${seed})`, async (stream, idKind, attributes) => {
    const columns: Columns = [
      ['id', idKind],
      ['reviewModifiedTime', 'instant'],
      ...attributes.map((name) => [name, 'text'] as const),
    ]
    const newest = new Map<string, ServedRecord>()
    for (const record of served[stream] ?? [])
      if (String(newest.get(String(record.id))?.reviewModifiedTime ?? '') < String(record.reviewModifiedTime))
        newest.set(String(record.id), record)
    const rows = [...newest.values()]
    expect(rows.length).toBeGreaterThan(2)
    const draw = drawer()
    const pick = () => draw(rows.length)
    const replace = (index: number, ...others: ReadonlyArray<ServedRecord>) => ({
      id: String(rows[index]?.id),
      table: rows.flatMap((row, at) => (at === index ? others : [row])),
    })
    const [dropped, doubled, renamed] = [pick(), pick(), pick()]
    const row = (index: number): ServedRecord => rows[index] as ServedRecord
    const damages = [
      { difference: 'missing', ...replace(dropped) },
      { difference: 'doubled', ...replace(doubled, row(doubled), row(doubled)) },
      { difference: 'extra', id: '', table: [...rows, { ...row(renamed), id: null }] },
      ...attributes.map((name) => ({
        difference: 'changed',
        ...replace(renamed, { ...row(renamed), [name]: 'Ünder 😀' }),
      })),
    ]
    const answers = await run(emulator, {
      statements: [await print(emulator, stream)],
      cases: [rows, ...damages.map(({ table }) => table)].map((table) => ({
        table: stream,
        columns,
        rows: toTable(table, columns),
        asked: [0],
      })),
    })
    expect(shorten(answers, 5, 1)).toEqual([[[]], ...damages.map(({ id, difference }) => [[[id, difference]]])])
  })

  it(`finds whose content differs with ${emulator.contentDamages} random damages (seed ${seed})`, async () => {
    const statements = await printAll(emulator, 'reviews', [
      ['--deep', '--buckets', String(bucketCount)],
      ['--deep', '--buckets', '1', '--ids', '0'],
    ])
    const rows = served.reviews ?? []
    const draw = drawer()
    const damages = Array.from({ length: emulator.contentDamages }, (_, trial) => {
      const [column, isFit, change] = contentDamages[trial % contentDamages.length] as ContentDamage
      const fitting = rows.filter(isFit)
      const chosen = fitting[draw(fitting.length)] as ServedRecord
      return { id: String(chosen.id), column, table: rows.map((row) => (row === chosen ? change(row) : row)) }
    })
    const answers = await run(emulator, {
      statements,
      cases: [rows, ...damages.map(({ table }) => table)].map((table) => ({
        table: 'reviews',
        columns: reviewColumns,
        rows: toTable(table, reviewColumns),
        asked: [0, 1],
      })),
    })
    expect(shorten(answers, 0, 1, 6)).toEqual([
      [[], []],
      ...damages.map(({ id, column }) => [[[String(bucketOf(id)), 'changed']], [[id, 'changed', column]]]),
    ])
  })

  it('finds whose parts differ in content', async () => {
    const statements = await printAll(emulator, 'review_sentiments', [
      ['--deep', '--buckets', String(bucketCount)],
      ['--deep', '--buckets', '1', '--ids', '0'],
    ])
    const rows = served.review_sentiments ?? []
    const first = rows.find(
      (row) => has('score')(row) && rows.filter(({ reviewId }) => reviewId === row.reviewId).length > 1,
    )
    const id = String(first?.reviewId)
    const changed = rows.map((row) => (row === first ? { ...row, score: Number(row.score) + 0.01 } : row))
    const tables = [rows, changed, rows.filter((row) => row !== first)]
    const answers = await run(emulator, {
      statements,
      cases: tables.map((table) => ({
        table: 'review_sentiments',
        columns: sentimentColumns,
        rows: toTable(table, sentimentColumns),
        asked: [0, 1],
      })),
    })
    expect(shorten(answers, 0, 1)).toEqual([
      [[], []],
      [[[String(bucketOf(id)), 'changed']], [[id, 'changed']]],
      [[[String(bucketOf(id)), 'rows missing']], [[id, 'rows missing']]],
    ])
    expect(answers[1]?.[1]?.[0]?.[6]).toBe('score')
  })
})
