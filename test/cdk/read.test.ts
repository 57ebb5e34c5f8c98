import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import * as t from 'io-ts'
import { describe, expect, it } from 'vitest'
import { type Failure, transientFailure } from '../../connector/cdk/failure'
import type { Message } from '../../connector/cdk/message'
import { type ReadRun, readStreams } from '../../connector/cdk/read'
import { defineStream, type Reader, type ReaderEvent, type StreamRequest } from '../../connector/cdk/stream'

type Script = ReadonlyArray<E.Either<Failure, ReaderEvent> | 'hang' | 'throw'>

const reader = (script: Script): Reader<unknown, number> & { asked: Array<ReadonlyArray<StreamRequest<number>>> } => {
  const asked: Array<ReadonlyArray<StreamRequest<number>>> = []
  return {
    name: 'scripted',
    asked,
    read: () =>
      async function* (demands) {
        asked.push(demands)
        for (const step of script) {
          if (step === 'hang') await new Promise(() => undefined)
          else if (step === 'throw') throw new Error('broken reader')
          else yield step
        }
      },
  }
}

const numbers = (name: string, from: Reader<unknown, number>) =>
  defineStream({
    name,
    codec: t.type({ id: t.number }),
    primaryKey: ['id'],
    cursor: 'id',
    reader: from,
    project: (id) => [{ json: Buffer.from(`{"id":${id}}`) }],
  })

const rows = (name: string, ...ids: number[]): E.Either<Failure, ReaderEvent> =>
  E.right({ _tag: 'Rows', stream: name, rows: ids.map((id) => ({ json: Buffer.from(`{"id":${id}}`) })) })
const state = (name: string, value: unknown): E.Either<Failure, ReaderEvent> =>
  E.right({ _tag: 'Checkpoint', stream: name, state: () => value })

const base = (streams: ReadRun<unknown>['streams']): ReadRun<unknown> => ({
  streams,
  env: {},
  catalog: streams.map(({ name }) => ({ name, syncMode: 'incremental', attributes: O.none })),
  state: {},
  now: () => 0,
  checkpointInterval: { records: 1, millis: 1e9 },
  stop: new AbortController().signal,
  onWait: () => () => undefined,
})

/** A promise, and what fulfils it. */
const openGate = () => {
  let open = (): void => undefined
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { open: () => open(), opened }
}

/**
 * A reader that gives these events at once, one after the other, and stops at each promise until the test fulfils it.
 */
const handDriven = (steps: ReadonlyArray<E.Either<Failure, ReaderEvent> | Promise<void>>): Reader<unknown, number> => ({
  name: 'hand-driven',
  read: () =>
    async function* () {
      for (const step of steps) {
        if (step instanceof Promise) await step
        else yield step
      }
    },
})

/** Runs at time 0 without due checkpoints, and a way to make them wait. */
const waiting = () => {
  const listeners = new Set<(until: number) => void>()
  let time = 0
  return {
    listeners,
    setTime: (now: number) => {
      time = now
    },
    wait: (until: number) => {
      for (const listener of [...listeners]) listener(until)
    },
    run: (streams: ReadRun<unknown>['streams']): ReadRun<unknown> => ({
      ...base(streams),
      now: () => time,
      checkpointInterval: { records: 99, millis: 1e9 },
      onWait: (listener) => {
        listeners.add(listener)
        return () => listeners.delete(listener)
      },
    }),
  }
}

const collect = async (run: ReadRun<unknown>): Promise<ReadonlyArray<Message>> => {
  const all: Message[] = []
  for await (const message of readStreams(run)) all.push(message)
  return all
}

/** A run in short: the kind and stream of each message, with its count or state. */
const brief = (messages: ReadonlyArray<Message>) =>
  messages.map((message) => {
    switch (message._tag) {
      case 'Started':
        return `${message.stream.name} started`
      case 'Records':
        return `${message.stream} ${message.rows.length} records`
      case 'Checkpoint':
        return `${message.stream} state ${JSON.stringify(message.state)} after ${message.count}`
      case 'Log':
        return `log ${message.message}`
      case 'Failed':
        return `${message.stream} failed ${message.failure._tag}`
      case 'Waiting':
        return `${message.stream} waits until ${message.until}`
      case 'SharedRecords':
        return `${message.streams.join(' and ')} share ${message.rows.length} records`
      case 'SharedCheckpoint':
      case 'TableVersion':
        return `${message._tag}, which only decoders send`
      default:
        return `${message.stream} ${message._tag.toLowerCase()}`
    }
  })

describe('readStreams', () => {
  it('counts no rows of a stream that the consumer makes of records, not even none', async () => {
    const script = reader([
      E.right({ _tag: 'SharedRows', streams: ['a', 'b'], rows: [{ json: Buffer.from('{}') }], hasUndeclared: false }),
      ...[1, 2].flatMap((value) => [state('a', value), state('b', value)]),
    ])
    const streams = [
      { ...numbers('a', script), derivation: { _tag: 'record' } as const },
      { ...numbers('b', script), derivation: { _tag: 'dimension', member: 'id' } as const },
    ]
    expect(brief(await collect({ ...base(streams), derives: true })).filter((each) => each.includes('state'))).toEqual([
      'a state 1 after 1',
      'b state 1 after NaN',
      'a state 2 after 0',
      'b state 2 after NaN',
    ])
  })

  it('sends the messages of a stream in order: started, running, records, state, finished', async () => {
    const a = numbers('a', reader([rows('a', 1, 2), state('a', 1), rows('a'), rows('a', 3), state('a', 2)]))
    expect(brief(await collect(base([a])))).toEqual([
      'a started',
      'a running',
      'a 2 records',
      'a state 1 after 2',
      'a 1 records',
      'a state 2 after 1',
      'a finished',
    ])
  })

  it('sends a state without records too, and never the same state twice in a row', async () => {
    const a = numbers('a', reader([state('a', 1), state('a', 1), state('a', 1)]))
    expect(brief(await collect(base([a])))).toEqual(['a started', 'a state 1 after 0', 'a finished'])
  })

  it('sends a state only after the checkpoint interval, and the last one in any case', async () => {
    const a = numbers(
      'a',
      reader([rows('a', 1), state('a', 1), rows('a', 2), state('a', 2), rows('a', 3), state('a', 3)]),
    )
    const messages = await collect({ ...base([a]), checkpointInterval: { records: 2, millis: 1e9 } })
    expect(brief(messages).filter((line) => line.includes('state'))).toEqual(['a state 2 after 2', 'a state 3 after 1'])
  })

  it('sends the states of streams that are read together for the same page, those with few records too', async () => {
    const page = (n: number) => [
      rows('a', 1, 2, 3, 4, 5, 6),
      ...(n === 1 ? [rows('b', 1)] : []),
      state('a', n),
      state('b', n),
    ]
    const shared = reader([...page(1), ...page(2), ...page(3), ...page(4), 'hang'])
    const stop = new AbortController()
    const run = { ...base([numbers('a', shared), numbers('b', shared)]), stop: stop.signal }
    const messages: Message[] = []
    for await (const message of readStreams({ ...run, checkpointInterval: { records: 4, millis: 1e9 } })) {
      messages.push(message)
      if (message._tag === 'Checkpoint' && message.stream === 'b' && message.state === 4) break
    }
    expect(brief(messages).filter((line) => line.includes('state'))).toEqual([
      'a state 2 after 12',
      'b state 2 after 1',
      'a state 4 after 12',
      'b state 4 after 0',
    ])
  })

  it('reads the streams of one reader together and fails them together; other streams go on', async () => {
    const shared = reader([rows('a', 1), state('a', 1), E.left(transientFailure('gone'))])
    const other = numbers('c', reader([state('c', 9)]))
    const messages = await collect(base([numbers('a', shared), numbers('b', shared), other]))
    expect(shared.asked.map((demands) => demands.map((demand) => demand.stream))).toEqual([['a', 'b']])
    expect(brief(messages)).toEqual([
      'a started',
      'b started',
      'a running',
      'a 1 records',
      'a state 1 after 1',
      'a failed Transient',
      'b failed Transient',
      'c started',
      'c state 9 after 0',
      'c finished',
    ])
  })

  it('ends a stream that its reader fails, and sends no message of it after that', async () => {
    const gone: E.Either<Failure, ReaderEvent> = E.right({
      _tag: 'Failed',
      stream: 'a',
      failure: transientFailure('gone'),
    })
    const shared = reader([rows('a', 1), state('a', 1), gone, rows('a', 2), rows('b', 3), state('a', 2), state('b', 3)])
    expect(brief(await collect(base([numbers('a', shared), numbers('b', shared)])))).toEqual([
      'a started',
      'b started',
      'a running',
      'a 1 records',
      'a state 1 after 1',
      'a failed Transient',
      'b running',
      'b 1 records',
      'b state 3 after 1',
      'b finished',
    ])
  })

  it('ends a stream whose reader throws with a System failure', async () => {
    const messages = await collect(base([numbers('a', reader(['throw']))]))
    expect(brief(messages)).toEqual(['a started', 'a failed System'])
  })

  it('names a stream that does not exist and reads the others', async () => {
    const run = base([numbers('a', reader([state('a', 1)]))])
    const messages = await collect({
      ...run,
      catalog: [{ name: 'nope', syncMode: 'incremental', attributes: O.none }, ...run.catalog],
    })
    expect(brief(messages)).toEqual(['nope failed Config', 'a started', 'a state 1 after 0', 'a finished'])
  })

  it('gives each stream its own state, and full refresh where incremental is not offered', async () => {
    const shared = reader([])
    const plain = defineStream({
      name: 'b',
      codec: t.type({ id: t.number }),
      primaryKey: ['id'],
      reader: shared,
      project: () => [],
    })
    await collect({ ...base([numbers('a', shared), plain]), state: { a: { at: 1 } } })
    expect(shared.asked[0]?.map(({ syncMode, state }) => [syncMode, state])).toEqual([
      ['incremental', O.some({ at: 1 })],
      ['full_refresh', O.none],
    ])
  })

  it('sends the last state and no more after a stop', async () => {
    const stop = new AbortController()
    const a = numbers('a', reader([rows('a', 1), state('a', 1), 'hang']))
    const b = numbers('b', reader([state('b', 1)]))
    const messages: Message[] = []
    for await (const message of readStreams({
      ...base([a, b]),
      checkpointInterval: { records: 99, millis: 1e9 },
      stop: stop.signal,
    })) {
      messages.push(message)
      if (message._tag === 'Records') setTimeout(() => stop.abort(), 5)
    }
    expect(brief(messages)).toEqual(['a started', 'a running', 'a 1 records', 'a state 1 after 1'])
  })

  describe('while the service makes it wait', () => {
    it('sends the states so far, then that it waits, and goes on', async () => {
      const { run, wait, listeners } = waiting()
      const page = openGate()
      const slow = handDriven([rows('a', 1), state('a', 1), state('b', 1), page.opened, rows('a', 2), state('a', 2)])
      const said: string[] = []
      const messages = readStreams(run([numbers('a', slow), numbers('b', slow)]))
      // The wait begins while the next page is awaited.
      const beginWait = setImmediate(() => wait(42))
      for await (const message of messages) {
        said.push(...brief([message]))
        // Turns in which it waits on, and says so no second time.
        if (message._tag === 'Waiting' && message.stream === 'b') setImmediate(() => setImmediate(page.open))
      }
      clearImmediate(beginWait)
      expect(said).toEqual([
        'a started',
        'b started',
        'a running',
        'a 1 records',
        'a state 1 after 1',
        'b state 1 after 0',
        'a waits until 42',
        'b waits until 42',
        'a 1 records',
        'a state 2 after 1',
        'a finished',
        'b finished',
      ])
      expect(listeners.size).toBe(0)
    })

    it('reports a wait that begins while pages read ahead are sent, after them and with their state', async () => {
      const { run, wait } = waiting()
      const page = openGate()
      const ahead = [rows('a', 1), state('a', 1), rows('a', 2), state('a', 2)]
      const a = numbers('a', handDriven([...ahead, page.opened, rows('a', 3), state('a', 3)]))
      const said: string[] = []
      for await (const message of readStreams(run([a]))) {
        said.push(...brief([message]))
        // Of several requests that wait, the longest counts.
        if (said.at(-1) === 'a running') for (const until of [42, 41]) wait(until)
        // Whoever takes a record may take its time: pages read ahead stay ahead.
        if (message._tag === 'Records') await new Promise((resolve) => setImmediate(resolve))
        if (message._tag === 'Waiting') page.open()
      }
      expect(said).toEqual([
        'a started',
        'a running',
        'a 1 records',
        'a 1 records',
        'a state 2 after 2',
        'a waits until 42',
        'a 1 records',
        'a state 3 after 1',
        'a finished',
      ])
    })

    it('reports it again, with the newer state, where a page comes before its end', async () => {
      const { run, wait } = waiting()
      const [first, second] = [openGate(), openGate()]
      const a = numbers('a', handDriven([state('a', 1), first.opened, rows('a', 1), state('a', 2), second.opened]))
      const said: string[] = []
      for await (const message of readStreams(run([a]))) {
        said.push(...brief([message]))
        if (message._tag === 'Started') wait(42)
        if (message._tag === 'Waiting') (said.includes('a 1 records') ? second : first).open()
      }
      expect(said).toEqual([
        'a started',
        'a state 1 after 0',
        'a waits until 42',
        'a running',
        'a 1 records',
        'a state 2 after 1',
        'a waits until 42',
        'a finished',
      ])
    })

    it('reports it to the streams of the next reader too, and no wait that is over', async () => {
      const { run, wait, setTime } = waiting()
      const [ofB, ofC] = [openGate(), openGate()]
      const streams = [
        numbers('a', handDriven([rows('a', 1)])),
        numbers('b', handDriven([ofB.opened])),
        numbers('c', handDriven([ofC.opened])),
      ]
      const said: string[] = []
      for await (const message of readStreams(run(streams))) {
        said.push(...brief([message]))
        if (message._tag === 'Records') wait(42)
        if (message._tag === 'Waiting') ofB.open()
        if (said.at(-1) === 'b finished') {
          setTime(42)
          setImmediate(() => setImmediate(ofC.open))
        }
      }
      expect(said.filter((line) => line.includes('waits'))).toEqual(['b waits until 42'])
    })
  })
})
