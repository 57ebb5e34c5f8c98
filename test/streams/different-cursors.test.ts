import { describe, expect, it } from 'vitest'
import type { SourceState } from '../../connector/cdk/catalog'
import type { Message } from '../../connector/cdk/message'
import { streams } from '../../connector/streams/streams'
import { createExportApi } from '../support/export-api'
import { copyState, createSourceEnv, lastCheckpointOnly, readAll, readMessages } from '../support/in-process'

const [minute, hour] = [60_000, 3_600_000]

/** The versions of reviews that a stream has received, as its destination holds them: the newest of each. */
type Table = ReadonlyMap<string, string>

/** A state of one stream that a platform may hold, and the rows that were stored with it. */
type Stage = { readonly state: unknown; readonly rows: Table }

const nothingYet: Stage = { state: undefined, rows: new Map() }

const selectStreams = (...names: ReadonlyArray<string>) => streams.filter(({ name }) => names.includes(name))
const names = ['reviews', 'review_tasks'] as const

/** 90 reviews, 20 minutes apart, each with a task; two streams of one read are made of them. */
const createService = () => {
  let clock = Date.parse('2026-03-01T12:00:00Z')
  const { data, api } = createExportApi(() => clock)
  const review = (id: number, modified: number) => ({
    id,
    modifiedTime: new Date(modified).toISOString(),
    taskDetails: { status: `as of ${modified}` },
  })
  data.reviews = Array.from({ length: 90 }, (_, n) => review(n + 1, clock - (90 - n) * 20 * minute))
  const source = createSourceEnv(api, { now: () => clock, pageSize: 30, concurrency: 1, startDate: clock - 90 * hour })
  return {
    data,
    source,
    /** An hour later these reviews have changed. */
    change: (...ids: ReadonlyArray<number>) => {
      clock += hour
      data.reviews = [
        ...data.reviews.filter(({ id }) => !ids.includes(id)),
        ...ids.map((id, n) => review(id, clock - 30 * minute + n * 1000)),
      ]
      clock += hour
    },
    truth: (): Table => new Map(data.reviews.map(({ id, modifiedTime }) => [String(id), modifiedTime])),
  }
}

type Service = ReturnType<typeof createService>

const addRows = (rows: Table, message: Message): Table => {
  if (message._tag !== 'Records') return rows
  const parsed = message.rows.map(({ json }) => JSON.parse(Buffer.from(json).toString()))
  const next = new Map(rows)
  for (const { id, reviewId = id, modifiedTime, reviewModifiedTime = modifiedTime } of parsed)
    if ((next.get(String(reviewId)) ?? '') <= reviewModifiedTime) next.set(String(reviewId), reviewModifiedTime)
  return next
}

/** Reads one stream alone from a stage on. Returns each stage on the way, the last one last. */
const readStages = async (
  { source }: Service,
  stream: string,
  from: Stage = nothingYet,
): Promise<ReadonlyArray<Stage>> => {
  const stages: Stage[] = []
  let { rows } = from
  const state = from.state === undefined ? {} : { [stream]: from.state }
  for await (const message of readMessages(source, selectStreams(stream), { state })) {
    expect(message).not.toMatchObject({ _tag: 'Failed' })
    rows = addRows(rows, message)
    if (message._tag === 'Checkpoint') stages.push({ state: copyState({ it: message.state }).it, rows })
  }
  return stages
}

/** Reads both streams in one run, each from its own stage. Returns what their destinations then hold. */
const readTogether = async ({ source, data }: Service, stages: Readonly<Record<string, Stage>>) => {
  data.requests.length = 0
  const state: SourceState = Object.fromEntries(
    Object.entries(stages).flatMap(([name, stage]) => (stage.state === undefined ? [] : [[name, stage.state]])),
  )
  const tables = Object.fromEntries(Object.entries(stages).map(([name, { rows }]) => [name, rows]))
  const messages = readMessages(source, selectStreams(...Object.keys(stages)), {
    state,
    checkpointInterval: lastCheckpointOnly,
  })
  for await (const message of messages) {
    expect(message).not.toMatchObject({ _tag: 'Failed' })
    if (message._tag === 'Records') tables[message.stream] = addRows(tables[message.stream] ?? new Map(), message)
  }
  return { tables, firstOffset: data.requests[0]?.offset }
}

const last = (stages: ReadonlyArray<Stage>): Stage => stages.at(-1) ?? nothingYet

describe('streams of one read', () => {
  it('get all rows each if one is added later', async () => {
    const service = createService()
    const reviews = last(await readStages(service, 'reviews'))
    service.change(3, 50)
    const { tables } = await readTogether(service, { reviews, review_tasks: nothingYet })
    expect(tables).toEqual({ reviews: service.truth(), review_tasks: service.truth() })
  })

  it('get all rows each if one was read alone for a while', async () => {
    const service = createService()
    const [reviews, tasks] = [
      last(await readStages(service, 'reviews')),
      last(await readStages(service, 'review_tasks')),
    ]
    service.change(3)
    const newer = last(await readStages(service, 'reviews', reviews))
    service.change(50)
    const newest = last(await readStages(service, 'reviews', newer))
    service.change(7)
    const { tables } = await readTogether(service, { reviews: newest, review_tasks: tasks })
    expect(tables).toEqual({ reviews: service.truth(), review_tasks: service.truth() })
  })

  it('get all rows each if one is refreshed alone, or gets an older state back', async () => {
    const service = createService()
    const older = last(await readStages(service, 'review_tasks'))
    service.change(3, 50)
    const refreshed = last(await readStages(service, 'reviews'))
    service.change(3, 7)
    for (const [reviews, tasks] of [
      [refreshed, older],
      [older, last(await readStages(service, 'review_tasks', older))],
    ] as const) {
      const { tables } = await readTogether(service, { reviews, review_tasks: tasks })
      expect(tables).toEqual({ reviews: service.truth(), review_tasks: service.truth() })
    }
  })

  it('lose nothing whatever states two of them have: of any run, finished or stopped anywhere', async () => {
    const service = createService()
    const stagesOf = new Map<string, Stage[]>(names.map((name) => [name, [nothingYet]]))
    // First runs, runs of changes, and first runs that begin only now; the stages of each are stops at any page.
    for (const ids of [[], [3, 50, 51], Array.from({ length: 45 }, (_, n) => n + 10)]) {
      if (ids.length > 0) service.change(...ids)
      for (const name of names) {
        const known = stagesOf.get(name) ?? []
        const finished = known.findLast(({ state }) => JSON.stringify(state)?.includes('"scan"') === false)
        for (const from of new Set([nothingYet, finished ?? nothingYet]))
          known.push(...(await readStages(service, name, from)))
      }
    }
    service.change(88)
    const [reviewStages = [], taskStages = []] = names.map((name) => stagesOf.get(name))
    expect(reviewStages.filter(({ state }) => JSON.stringify(state)?.includes('"scan"')).length).toBeGreaterThan(10)
    for (const reviews of reviewStages)
      for (const tasks of taskStages) {
        const { tables } = await readTogether(service, { reviews, review_tasks: tasks })
        const states = `${JSON.stringify(reviews.state)} and ${JSON.stringify(tasks.state)}`
        expect(tables, states).toEqual({ reviews: service.truth(), review_tasks: service.truth() })
      }
  })

  it('go on from the token of the least advanced of them, and read everything if one has none', async () => {
    const service = createService()
    const stages = { reviews: [] as Stage[], review_tasks: [] as Stage[] }
    let tables: Readonly<Record<string, Table>> = { reviews: new Map(), review_tasks: new Map() }
    for await (const message of readMessages(service.source, selectStreams(...names))) {
      if (message._tag === 'Records') {
        const { stream } = message
        tables = { ...tables, [stream]: addRows(tables[stream] ?? new Map(), message) }
      }
      if (message._tag === 'Checkpoint') {
        const { stream } = message
        const stage = { state: copyState({ it: message.state }).it, rows: tables[stream] ?? new Map() }
        stages[stream as 'reviews'].push(stage)
      }
    }
    const open = stages.reviews.filter(({ state }) => JSON.stringify(state).includes('"scan"'))
    expect(open.length).toBeGreaterThan(2)
    const offsets: Array<number | undefined> = []
    for (const stage of open)
      offsets.push((await readTogether(service, { reviews: stage, review_tasks: stage })).firstOffset)
    expect(new Set(offsets).size).toBeGreaterThan(2)
    for (const [i, reviews] of open.entries())
      for (const [j, tasks] of stages.review_tasks.slice(0, open.length).entries()) {
        const both = await readTogether(service, { reviews, review_tasks: tasks })
        const all = { reviews: service.truth(), review_tasks: service.truth() }
        expect(both.tables, `pages ${i} and ${j}`).toEqual(all)
        expect([offsets[i], offsets[j]]).toContain(both.firstOffset)
        const one = await readTogether(service, { reviews, review_tasks: nothingYet })
        expect(one, `page ${i}`).toEqual({ tables: all, firstOffset: 0 })
      }
  })

  it('send nothing again to the stream that has it', async () => {
    const service = createService()
    const first = await readAll(service.source, selectStreams(...names))
    service.change(3)
    const second = await readAll(service.source, selectStreams('reviews'), first.state)
    const third = await readAll(service.source, selectStreams(...names), second.state)
    expect(third.records.reviews).toEqual([])
    expect(third.records.review_tasks?.map(({ reviewId }) => Number(reviewId))).toEqual([3])
  })
})
