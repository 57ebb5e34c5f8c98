import { describe, expect, it } from 'vitest'
import { sourceReadCommand } from '../../../connector/cli/feedback-source'
import { streams } from '../../../connector/streams/streams'
import { type Fields, messages, warehouse } from '../../support/destination'
import { writeTempFile } from '../../support/files'
import { startProgram } from '../../support/program'
import { runCommand } from '../../support/run-command'
import { createScrollService, publishedTraits, type ScrollTraits, specifiedTraits } from '../../support/scroll-service'

const day = 86_400_000
const keys = Object.fromEntries(streams.map(({ name, primaryKey }) => [name, primaryKey]))

const people = ['1', '2', '3', '4']

/** A service with rows of two years: many on the first person, 33 in one second on the second, none on the last. */
const startService = async (traits: ScrollTraits, onEnd: (close: () => void) => void, rows = 260) => {
  const start = Date.now() - 60_000
  const service = createScrollService(traits, 7, start)
  for (const id of people) service.addEntity(`person ${id}`)
  for (let n = 0; n < rows; n += 1) service.addRow('person 1', start - 60_000 - service.pick(700 * day))
  const burst = Math.floor((start - 50 * day) / 1000) * 1000
  for (let n = 0; n < 33; n += 1) service.addRow('person 2', burst + (n % 3))
  for (let n = 0; n < 5; n += 1) service.addRow('person 3', start - (3 + 90 * n) * day)
  const { url } = await service.listen(onEnd)
  const startDate = Math.floor((start - 365 * day) / 1000) * 1000
  const config = writeTempFile({
    base_url: url,
    credentials: { auth_type: 'access_token', access_token: 'not-for-anybody' },
    start_date: new Date(startDate).toISOString(),
    entities: { person_ids: people },
    feedback_filters: { per_page: 50 },
  })
  return { service, config, startDate }
}

type Started = Awaited<ReturnType<typeof startService>>

const connect = ({ service, config, startDate }: Started, stream: string) => {
  const destination = warehouse()
  const catalog = writeTempFile({ streams: [{ stream: { name: stream, json_schema: {} }, sync_mode: 'incremental' }] })
  const args = () => ['--config', config, '--catalog', catalog, '--state', writeTempFile(destination.state())]
  return {
    args,
    load: (stdout: string) => destination.load(stdout, keys),
    /** A run to its end; how many records it sent, and what it logged. */
    sync: async () => {
      const { status, stdout, stderr } = await runCommand(sourceReadCommand, args())
      expect(status, stderr + stdout.slice(-1000)).toBe(0)
      const lines = stdout
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line))
      const logs = lines.flatMap(({ log }): ReadonlyArray<string> => (log === undefined ? [] : [log.message]))
      return { records: destination.load(stdout, keys)[stream] ?? 0, logs }
    },
    /** Rows that the service has and the destination lacks, and rows of other times that it has. */
    missing: () => {
      const rows = destination.rows(stream).map(({ entityType, entityId, id, documentId, response }) => {
        const text = response === null ? null : (response as Fields).responseText
        return `${entityType} ${entityId} ${id ?? documentId} ${text}`
      })
      const held = new Set(rows)
      return service.truth(startDate).filter((row) => !held.has(row))
    },
    early: () =>
      destination.rows(stream).filter(({ mentionTime }) => Date.parse(String(mentionTime)) < startDate - 1000),
    states: () => JSON.stringify(destination.state()),
  }
}

const told = (logs: ReadonlyArray<string>, text: string): number => logs.filter((log) => log.includes(text)).length

const readable: Readonly<Record<string, Partial<ScrollTraits>>> = {
  'scrolls by a key of its rows, as published': {},
  'scrolls by offset': { key: 'offset' },
  'gives a key after its last page too': { key: 'endless' },
  'gives the same key with each page': { key: 'constant' },
  'repeats its last page': { key: 'repeated' },
  'repeats the last row of each page': { key: 'overlap' },
  'echoes a window that it ignores': { echo: 'requested' },
  'echoes nothing': { echo: 'none', echoedSize: 'none' },
  'uses page and gives no key': { key: 'none', page: 'used' },
  'uses page, gives no key and echoes the window that it ignores': {
    key: 'none',
    page: 'used',
    echo: 'requested',
  },
  'uses page and gives empty keys': { key: 'blank', page: 'used' },
  'uses page, and its key leads to the first page for ever': { key: 'stuck', page: 'used' },
  'uses page, and its keys lead in a circle': { key: 'cycle', page: 'used' },
  'has fewer rows in a page than were requested, and says so': { maxPageSize: 12 },
  'has fewer rows in a page than were requested, and hides it': { maxPageSize: 12, echoedSize: 'requested' },
  'ignores days': { maxDays: undefined },
  'serves in no order': { order: 'scattered' },
  'serves the oldest first': { order: 'oldest' },
  'uses windows but not page': { windows: 'used', echo: 'requested', page: 'ignored' },
  'is as specified': specifiedTraits,
}

describe.each(Object.entries(readable))('a service that %s', (_, traits) => {
  it.concurrent('is read completely, answers that come late included, and not again', async ({
    onTestFinished,
    expect: expectHere,
  }) => {
    const started = await startService({ ...publishedTraits, ...traits }, onTestFinished)
    const { service } = started
    const { sync, missing, early } = connect(started, 'transparency_reviews')
    const first = await sync()
    expectHere(missing()).toEqual([])
    expectHere(early()).toEqual([])
    const isScrolled = { ...publishedTraits, ...traits }.windows === 'ignored'
    expectHere(told(first.logs, 'ignores fromDate and toDate')).toBe(isScrolled ? 1 : 0)
    expectHere(told(first.logs, 'left out')).toBe(isScrolled ? 1 : 0)
    service.addRow('person 1', service.now())
    service.respond('person 3')
    service.advanceClock(60_000)
    expectHere((await sync()).records).toBeGreaterThan(0)
    expectHere(missing()).toEqual([])
    service.advanceClock(60_000)
    expectHere((await sync()).records).toBe(0)
    for (const { fromDate, toDate, minRatingCount } of service.requests) {
      for (const time of [fromDate, toDate]) expectHere(time ?? 'T00:00:00Z').toMatch(/T\d\d:\d\d:\d\dZ$/)
      expectHere(minRatingCount).toBe(-1)
    }
  })

  it.concurrent('loses nothing while rows come and go, and follows one of another kind', async ({
    onTestFinished,
    expect: expectHere,
  }) => {
    const started = await startService({ ...publishedTraits, ...traits, changes: 0.5 }, onTestFinished)
    const { service } = started
    const { sync, missing } = connect(started, 'transparency_reviews')
    for (const kind of [traits, specifiedTraits, traits]) {
      service.setTraits({ ...publishedTraits, ...kind, changes: 0.5 })
      await sync()
      service.advanceClock(3_600_000)
      service.setTraits({ changes: 0 })
      await sync()
      expectHere(missing()).toEqual([])
      service.advanceClock(3_600_000)
    }
  })
})

describe('comments of a service that ignores windows', () => {
  it('are read by page', async ({ onTestFinished }) => {
    const started = await startService({ ...publishedTraits, page: 'used' }, onTestFinished)
    const { sync, missing, early } = connect(started, 'comments')
    expect(told((await sync()).logs, 'ignores fromDate and toDate')).toBe(1)
    expect([missing(), early()]).toEqual([[], []])
    started.service.advanceClock(60_000)
    expect((await sync()).records).toBe(0)
  })
})

describe('a service that cannot be read to its end', () => {
  it.each<[string, Partial<ScrollTraits>]>([
    ['neither key nor page', { key: 'none' }],
    ['a key that leads to the first page', { key: 'stuck' }],
    ['keys that lead in a circle', { key: 'cycle' }],
  ])('is named, its state stays, and all rows come once it can: %s', async (_, traits) => {
    const closes: Array<() => void> = []
    const started = await startService({ ...publishedTraits, ...traits }, (close) => closes.push(close), 900)
    const { sync, missing } = connect(started, 'transparency_reviews')
    const { logs } = await sync()
    expect(missing().length).toBeGreaterThan(0)
    expect(told(logs, 'person 1 cannot be read completely')).toBe(1)
    expect(started.service.requests.length).toBeLessThan(60)
    started.service.setTraits(publishedTraits)
    await sync()
    expect(missing()).toEqual([])
    for (const close of closes) close()
  })

  it('because it goes back fewer days than requested: the days are named once', async ({ onTestFinished }) => {
    const started = await startService({ ...publishedTraits, maxDays: 90 }, onTestFinished)
    const { sync, missing } = connect(started, 'transparency_reviews')
    expect(told((await sync()).logs, 'goes back 90 days at most')).toBe(1)
    const recent = new Set(started.service.truth(started.service.now() - 89 * day))
    expect(missing().filter((row) => recent.has(row))).toEqual([])
  })
})

it('a run that is killed while it scrolls is followed by one that reads all', async ({ onTestFinished }) => {
  const started = await startService({ ...publishedTraits, maxPageSize: 10, changes: 0.5 }, onTestFinished, 1500)
  const { service } = started
  const { args, load, sync, missing, states } = connect(started, 'transparency_reviews')
  for (const after of [20, 40, 90]) {
    const seen = service.requests.length
    const running = startProgram('source-feedback', ['read', ...args()])
    running.onOutput(() => {
      if (service.requests.length >= seen + after) running.kill('SIGKILL')
    })
    const { stdout, signal } = await running.ended
    expect(signal).toBe('SIGKILL')
    const complete = stdout.slice(0, stdout.lastIndexOf('\n') + 1)
    expect(messages(complete).length).toBeGreaterThan(0)
    load(complete)
    service.advanceClock(60_000)
  }
  expect(states()).not.toContain('scrollKey')
  service.setTraits({ changes: 0 })
  await sync()
  expect(missing()).toEqual([])
})
