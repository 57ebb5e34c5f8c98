import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import { describe, expect, it } from 'vitest'
import {
  configFailure,
  type Failure,
  systemFailure,
  transientFailure,
  unexpectedFailure,
} from '../../../connector/cdk/failure'
import type { Message } from '../../../connector/cdk/message'
import type { BatchAnswer, OpenSink, RecordVerdict } from '../../../connector/cdk/sink'
import type { DeadLetter } from '../../../connector/cdk/write/dead-letters'
import { type WriteResult, type WriteRun, writeToSinks } from '../../../connector/cdk/write/write'

type Thing = { readonly id: string; readonly bad?: string }

const streamOf = (id: string, object = 'things') => ({
  id,
  name: id,
  objectName: object,
  key: [['id']],
  columns: O.none,
  isDeletion: false,
})
const record = (thing: Thing, stream = 'visits'): Message => ({
  _tag: 'Records',
  stream,
  rows: [{ json: Buffer.from(JSON.stringify(thing)), value: thing }],
  at: 0,
})
const state = (name: string, stream = 'visits'): Message => ({ _tag: 'Checkpoint', stream, state: name, count: 0 })
const streamEnd = (stream = 'visits', isWhole = false): Message => ({
  _tag: 'Finished',
  stream,
  extent: isWhole ? 'everything' : 'changes',
})
const incomplete: Message = { _tag: 'Failed', stream: 'visits', failure: transientFailure('cut short') }
const things = (count: number, from = 0): ReadonlyArray<Message> =>
  Array.from({ length: count }, (_, index) => record({ id: String(from + index) }))

const accepted: RecordVerdict = { _tag: 'Accepted' }
const acceptAll = (items: ReadonlyArray<unknown>): BatchAnswer => ({
  _tag: 'Verdicts',
  verdicts: items.map(() => accepted),
})

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Answers each batch that waits, until the run has ended. */
const answerAll = async (done: Promise<unknown>, waiting: Array<() => void>): Promise<void> => {
  let ended = false
  void done.then(() => {
    ended = true
  })
  while (!ended) {
    waiting.shift()?.()
    await nextTurn()
  }
}

/** A sink that rejects records with `bad` before they are sent. */
const sink = (
  send: (items: ReadonlyArray<Thing>) => Promise<E.Either<Failure, BatchAnswer>>,
  finish: OpenSink<unknown>['finish'] = () => E.right({ items: [], notes: [] }),
): OpenSink<unknown> => ({
  prepare: () =>
    E.right((columns) => {
      const item = columns as Thing
      return item.bad === undefined ? E.right({ item, key: item.id }) : E.left(item.bad)
    }),
  write: (items) => () => send(items as ReadonlyArray<Thing>),
  isReachable: async () => false,
  finish,
})

/** A sink that accepts everything, and the ids of each batch. */
const createAcceptingSink = () => {
  const batches: Array<ReadonlyArray<string>> = []
  return {
    batches,
    sink: sink(async (items) => {
      batches.push(items.map(({ id }) => id))
      return E.right(acceptAll(items))
    }),
  }
}

const startRun = (messages: Iterable<Message> | AsyncIterable<Message>, more: Partial<WriteRun> = {}) => {
  const emitted: Array<string> = []
  const letters: Array<DeadLetter> = []
  const done: Promise<WriteResult> = writeToSinks({
    input: async function* () {
      for await (const message of messages) yield E.right([message])
    },
    streams: [streamOf('visits')],
    saysEndings: true,
    sinks: new Map([['things', createAcceptingSink().sink]]),
    policy: { onReject: 'continue', maxPercent: 10 },
    batch: { count: 10, bytes: 1000, millis: 60_000 },
    inFlight: 3,
    deadLetters: {
      add: (letter) => {
        letters.push(letter)
      },
      flush: async () => undefined,
    },
    emit: async (checkpoint) => {
      const name = checkpoint._tag === 'Checkpoint' ? checkpoint.state : 'shared'
      emitted.push(`${name} ${checkpoint.counts?.accepted}+${checkpoint.counts?.rejected}`)
    },
    log: () => undefined,
    now: () => 0,
    setTimer: () => () => undefined,
    stop: new AbortController().signal,
    ...more,
  })
  return { done, emitted, letters }
}

const sinksOf = (one: OpenSink<unknown>) => ({ sinks: new Map([['things', one]]) })

describe('writeToSinks', () => {
  it('sends full batches, the rest at the end, and emits each state', async () => {
    const { batches, sink } = createAcceptingSink()
    const { done, emitted } = startRun([...things(25), state('s'), streamEnd()], sinksOf(sink))
    expect((await done).failures).toEqual([])
    expect(batches.map(({ length }) => length)).toEqual([10, 10, 5])
    expect(emitted).toEqual(['s 25+0'])
  })

  it('emits states in order, each only after every batch before it is acknowledged', async () => {
    const waiting: Array<() => void> = []
    const slowSink = sink((items) => new Promise((resolve) => waiting.push(() => resolve(E.right(acceptAll(items))))))
    const { done, emitted } = startRun(
      [...things(10), state('first'), ...things(10, 10), state('second'), streamEnd()],
      sinksOf(slowSink),
    )
    while (waiting.length < 2) await nextTurn()
    waiting[1]?.()
    for (let n = 0; n < 5; n += 1) await nextTurn()
    expect(emitted).toEqual([])
    waiting[0]?.()
    await done
    expect(emitted).toEqual(['first 10+0', 'second 10+0'])
  })

  it('keeps the order of each key and never has a key in two batches at a time', async () => {
    const keysInFlight = new Set<string>()
    const written: Array<string> = []
    const checkingSink = sink(async (items) => {
      for (const { id } of items) {
        expect(keysInFlight).not.toContain(id.split('/')[0])
        keysInFlight.add(id.split('/')[0] ?? '')
      }
      await new Promise((resolve) => setImmediate(resolve))
      for (const { id } of items) {
        keysInFlight.delete(id.split('/')[0] ?? '')
        written.push(id)
      }
      return E.right(acceptAll(items))
    })
    const keyed: OpenSink<unknown> = {
      ...checkingSink,
      prepare: () =>
        E.right((columns) => {
          const item = columns as Thing
          return E.right({ item, key: item.id.split('/')[0] ?? '' })
        }),
    }
    const versions = Array.from({ length: 60 }, (_, n) => record({ id: `${n % 7}/${n}` }))
    const { done } = startRun([...versions, streamEnd()], sinksOf(keyed))
    expect((await done).countsByStream.get('visits')).toEqual({ received: 60, accepted: 60, rejected: 0 })
    for (let key = 0; key < 7; key += 1) {
      const order = written.filter((id) => id.startsWith(`${key}/`)).map((id) => Number(id.split('/')[1]))
      expect(order).toEqual([...order].sort((a, b) => a - b))
    }
  })

  it('reports the first of several failures', async () => {
    const waiting: Array<() => void> = []
    const failingSink = sink(
      ([first]) =>
        new Promise((resolve) => waiting.push(() => resolve(E.left(transientFailure(`no answer for ${first?.id}`))))),
    )
    const { done } = startRun([...things(20), streamEnd()], sinksOf(failingSink))
    while (waiting.length < 2) await nextTurn()
    for (const answer of waiting) answer()
    expect((await done).failures).toEqual([transientFailure('no answer for 0')])
  })

  it('ends with the first rejection for all streams if none is allowed', async () => {
    const { batches, sink } = createAcceptingSink()
    const { done } = startRun(
      [record({ id: 'a', bad: 'wrong' }, 'others'), ...things(10), streamEnd(), streamEnd('others')],
      {
        ...sinksOf(sink),
        streams: [streamOf('visits'), streamOf('others')],
        policy: { onReject: 'fail', maxPercent: 10 },
      },
    )
    expect((await done).failures).toHaveLength(1)
    expect(batches).toEqual([])
  })

  it('does not fail for items that a sink sends at its end and that are accepted', async () => {
    const { batches, sink } = createAcceptingSink()
    const finish: OpenSink<unknown>['finish'] = () => E.right({ items: [{ key: 'f', item: { id: 'f' } }], notes: [] })
    const { done } = startRun([record({ id: 'a' }), streamEnd()], sinksOf({ ...sink, finish }))
    expect((await done).failures).toEqual([])
    expect(batches).toEqual([['a'], ['f']])
  })

  it('waits for the last batch of every sink', async () => {
    const waiting: Array<() => void> = []
    const slowSink = sink((items) => new Promise((resolve) => waiting.push(() => resolve(E.right(acceptAll(items))))))
    const sinks = new Map([
      ['visits', createAcceptingSink().sink],
      ['places', slowSink],
    ])
    const { done, emitted } = startRun(
      [record({ id: 'v' }), record({ id: 'p' }, 'places'), state('s', 'places'), streamEnd(), streamEnd('places')],
      { sinks, streams: [streamOf('visits', 'visits'), streamOf('places', 'places')] },
    )
    while (waiting.length < 1) await nextTurn()
    for (let n = 0; n < 5; n += 1) await nextTurn()
    waiting[0]?.()
    expect((await done).countsByStream.get('places')).toEqual({ received: 1, accepted: 1, rejected: 0 })
    expect(emitted).toEqual(['s 1+0'])
  })

  it('reads no further than its window while the service is slow', async () => {
    let read = 0
    const waiting: Array<() => void> = []
    const slowSink = sink((items) => new Promise((resolve) => waiting.push(() => resolve(E.right(acceptAll(items))))))
    const { done } = startRun(
      (async function* () {
        for (const thing of things(1000)) {
          read += 1
          yield thing
        }
        yield streamEnd()
      })(),
      sinksOf(slowSink),
    )
    for (let n = 0; n < 200; n += 1) await nextTurn()
    expect(waiting).toHaveLength(3)
    expect(read).toBeLessThanOrEqual(51)
    await answerAll(done, waiting)
    expect(read).toBe(1000)
  })

  it('reads no further than its window though only states follow a record that is not acknowledged', async () => {
    let read = 0
    const waiting: Array<() => void> = []
    const slowSink = sink((items) => new Promise((resolve) => waiting.push(() => resolve(E.right(acceptAll(items))))))
    const { done, emitted } = startRun(
      (async function* () {
        yield* things(1)
        for (let n = 0; n < 1000; n += 1) {
          read += 1
          yield state(`s${n}`)
        }
        yield streamEnd()
      })(),
      sinksOf(slowSink),
    )
    for (let n = 0; n < 200; n += 1) await nextTurn()
    expect([waiting.length, read]).toEqual([1, 49])
    waiting[0]?.()
    expect((await done).failures).toEqual([])
    expect(emitted).toHaveLength(1000)
  })

  it('writes rejected records to the dead letters, counts them and continues', async () => {
    const rejectingSink = sink(async (items) =>
      E.right({
        _tag: 'Verdicts',
        verdicts: items.map(({ id }): RecordVerdict => (id === '3' ? { _tag: 'Rejected', reason: 'Error' } : accepted)),
      }),
    )
    const { done, emitted, letters } = startRun(
      [...things(20), record({ id: 'x', bad: 'email is missing' }), state('s'), streamEnd()],
      sinksOf(rejectingSink),
    )
    const { failures, countsByStream } = await done
    expect(failures).toEqual([])
    expect(countsByStream.get('visits')).toEqual({ received: 21, accepted: 19, rejected: 2 })
    expect(emitted).toEqual(['s 19+2'])
    expect(letters.map(({ key, reason, batch }) => [key, reason, batch])).toEqual(
      expect.arrayContaining([
        ['3', 'Error', 1],
        [null, 'email is missing', null],
      ]),
    )
  })

  it('has a dead letter on disk before the state that covers it is emitted', async () => {
    const order: Array<string> = []
    await startRun([...things(1), record({ id: 'x', bad: 'wrong' }), state('s'), streamEnd()], {
      deadLetters: {
        add: () => {
          order.push('add')
        },
        flush: async () => {
          await new Promise((resolve) => setImmediate(resolve))
          order.push('flush')
        },
      },
      emit: async () => {
        order.push('answer')
      },
    }).done
    expect(order.indexOf('add')).toBeLessThan(order.indexOf('flush'))
    expect(order.indexOf('flush')).toBeLessThan(order.indexOf('answer'))
  })

  it('ends at the first rejected record under on_reject fail, and emits no state after it', async () => {
    const { done, emitted } = startRun(
      [...things(10), state('before'), record({ id: 'x', bad: 'wrong' }), state('after'), ...things(90), streamEnd()],
      { policy: { onReject: 'fail', maxPercent: 10 } },
    )
    const { failures } = await done
    expect(failures).toMatchObject([
      { _tag: 'Config', message: expect.stringContaining('record 11 was rejected: wrong') },
    ])
    expect(emitted).toEqual(['before 10+0'])
  })

  it('fails if all records of a stream were rejected, and emits none of its states', async () => {
    const all = Array.from({ length: 5 }, (_, n) => record({ id: String(n), bad: 'wrong' }))
    const { done, emitted } = startRun([...all, state('s'), streamEnd()], {
      policy: { onReject: 'continue', maxPercent: 100 },
    })
    expect((await done).failures).toMatchObject([{ message: expect.stringContaining('all 5 records were rejected') }])
    expect(emitted).toEqual([])
  })

  it('writes the other streams though all records of one are rejected, and says which failed', async () => {
    const wrong = Array.from({ length: 150 }, (_, n) => record({ id: String(n), bad: 'wrong' }, 'others'))
    for (const bad of [wrong.slice(0, 3), wrong]) {
      const { batches, sink } = createAcceptingSink()
      const { done, emitted } = startRun(
        [
          ...bad,
          state('o', 'others'),
          ...things(2),
          state('s'),
          ...bad,
          streamEnd('others'),
          ...things(1, 2),
          state('t'),
          streamEnd(),
        ],
        { ...sinksOf(sink), streams: [streamOf('visits'), streamOf('others')] },
      )
      expect((await done).failures).toMatchObject([{ message: expect.stringMatching(/^others: .* rejected/) }])
      expect(batches.flat()).toEqual(['0', '1', '2'])
      expect(emitted).toEqual(['s 2+0', 't 1+0'])
    }
  })

  it('sends nothing that may refer to records of a stream with too many rejections', async () => {
    const wrong = Array.from({ length: 150 }, (_, n) => record({ id: String(n), bad: 'wrong' }, 'others'))
    const started: Message = {
      _tag: 'Started',
      stream: { name: 'visits', schema: {}, primaryKey: ['id'], cursor: O.none, syncMode: 'incremental' },
    }
    const others = streamOf('others', 'earlier')
    for (const [streams, opened] of [
      [[others, streamOf('visits')], []],
      [[others, streamOf('more', 'earlier')], [started]],
    ] as const) {
      const { batches, sink } = createAcceptingSink()
      const { done, emitted } = startRun(
        [...wrong, ...opened, ...things(12), state('s'), streamEnd(), streamEnd('others'), streamEnd('more')],
        {
          sinks: new Map([
            ['earlier', createAcceptingSink().sink],
            ['things', sink],
          ]),
          objectNames: { visits: 'things' },
          streams,
        },
      )
      expect((await done).failures).toMatchObject([{ message: expect.stringMatching(/^others: .* rejected/) }])
      expect(batches).toEqual([])
      expect(emitted).toEqual([])
    }
  })

  it('sends nothing that may refer to records of one of several streams with too many rejections', async () => {
    const wrongOf = (stream: string) =>
      Array.from({ length: 150 }, (_, n) => record({ id: String(n), bad: 'wrong' }, stream))
    const { batches, sink } = createAcceptingSink()
    const { done } = startRun([...wrongOf('more'), ...wrongOf('others'), ...things(12), streamEnd()], {
      sinks: new Map([
        ['earlier', createAcceptingSink().sink],
        ['things', sink],
      ]),
      streams: [streamOf('more'), streamOf('others', 'earlier'), streamOf('visits')],
    })
    expect((await done).failures).toHaveLength(2)
    expect(batches).toEqual([])
  })

  it('sends what comes before a stream with too many rejections', async () => {
    const wrong = Array.from({ length: 150 }, (_, n) => record({ id: String(n), bad: 'wrong' }, 'others'))
    const { batches, sink } = createAcceptingSink()
    const { done, emitted } = startRun([...wrong, ...things(2), state('s'), streamEnd(), streamEnd('others')], {
      sinks: new Map([
        ['things', sink],
        ['later', createAcceptingSink().sink],
      ]),
      streams: [streamOf('visits'), streamOf('others', 'later')],
    })
    expect((await done).failures).toMatchObject([{ message: expect.stringMatching(/^others: .* rejected/) }])
    expect(batches.flat()).toEqual(['0', '1'])
    expect(emitted).toEqual(['s 2+0'])
  })

  it('reads no further once every stream has too many rejections', async () => {
    let read = 0
    const { done } = startRun(
      (async function* () {
        for (; read < 1000; read += 1) yield record({ id: 'x', bad: 'wrong' })
      })(),
    )
    expect((await done).failures).toMatchObject([{ message: expect.stringContaining('max_rejects_percent') }])
    expect(read).toBeLessThan(110)
  })

  it('reads on while it holds such states back', async () => {
    const all = Array.from({ length: 500 }, (_, n) => record({ id: String(n), bad: 'wrong' }))
    const { done, emitted } = startRun([...all, state('s'), record({ id: 'good' }), state('t'), streamEnd()], {
      policy: { onReject: 'continue', maxPercent: 100 },
    })
    expect((await done).failures).toEqual([])
    expect(emitted).toEqual(['s 0+500', 't 1+0'])
  })

  it('names the stream that was not complete, and emits the states whose records are written', async () => {
    const { done, emitted } = startRun([...things(3), state('s'), incomplete])
    expect(await done).toMatchObject({ failures: [], inputFailures: [{ message: expect.stringContaining('visits') }] })
    expect(emitted).toEqual(['s 3+0'])
  })

  it.each<[string, boolean, ReadonlyArray<Message>, ReadonlyArray<string>]>([
    ['is incomplete where the caller says endings', true, [...things(3), state('s')], ['visits']],
    ['ends with the input where it does not', false, [...things(3), state('s')], []],
    ['that failed is incomplete all the same', false, [...things(3), state('s'), incomplete], ['visits']],
    ['that failed and ended is incomplete', false, [...things(3), state('s'), incomplete, streamEnd()], ['visits']],
    ['of another name that failed is incomplete', true, [{ ...incomplete, stream: 'x' }, streamEnd()], ['x']],
    ['of an empty input is no failure', true, [], []],
    ['of an input that was cut is no matter', false, [{ _tag: 'Failed', failure: transientFailure('cut') }], ['cut']],
  ])('a stream without an ending %s', async (_, saysEndings, messages, problems) => {
    const { done, emitted } = startRun(messages, { saysEndings })
    const { failures, inputFailures } = await done
    expect(failures).toEqual([])
    expect(inputFailures.map(({ message }) => message.split(':')[0])).toEqual(problems)
    expect(emitted).toEqual(messages.some(({ _tag }) => _tag === 'Checkpoint') ? ['s 3+0'] : [])
  })

  it('opens the streams that the input declares, and gives a shared state the counts of all', async () => {
    const started = (name: string): Message => ({
      _tag: 'Started',
      stream: { name, schema: {}, primaryKey: ['id'], cursor: O.none, syncMode: 'incremental' },
    })
    const shared: Message = { _tag: 'SharedCheckpoint', states: [] }
    const { done, emitted } = startRun(
      [started('things'), record({ id: '1' }, 'things'), shared, streamEnd('things')],
      {
        streams: [],
      },
    )
    const { failures, countsByStream } = await done
    expect(failures).toEqual([])
    expect([...countsByStream]).toEqual([['things', { received: 1, accepted: 1, rejected: 0 }]])
    expect(emitted).toEqual(['shared 1+0'])
  })

  it('logs the warnings of the input; the source has logged its own errors', async () => {
    const entries: Array<string> = []
    const log = (level: 'error' | 'warn', message: string): Message => ({ _tag: 'Log', level, message })
    await startRun([log('warn', 'a line is skipped'), log('error', 'the source failed'), streamEnd()], {
      log: (level, message) => entries.push(`${level} ${message}`),
    }).done
    expect(entries).toEqual(['warn a line is skipped'])
  })

  it('ends with the failure of a batch and reads no further', async () => {
    let read = 0
    const broken = sink(async () => E.left(transientFailure('gone')))
    const { done, emitted } = startRun(
      (async function* () {
        for (const thing of things(100)) {
          read += 1
          yield thing
          await new Promise((resolve) => setImmediate(resolve))
        }
        yield state('s')
        yield streamEnd()
      })(),
      sinksOf(broken),
    )
    expect((await done).failures).toEqual([transientFailure('gone')])
    expect(emitted).toEqual([])
    expect(read).toBeLessThan(20)
  })

  it('ends with the failure of a batch though the input has no next message', async () => {
    const broken = sink(async () => E.left(transientFailure('gone')))
    const endlessInput: WriteRun['input'] = async function* (halt) {
      yield E.right([...things(10)])
      await new Promise((resolve) => halt.addEventListener('abort', resolve))
    }
    expect((await startRun([], { ...sinksOf(broken), input: endlessInput }).done).failures).toEqual([
      transientFailure('gone'),
    ])
  })

  it('sends a batch that is not full once its items are old enough', async () => {
    const { batches, sink } = createAcceptingSink()
    const timers: Array<() => void> = []
    let now = 0
    let go: () => void = () => undefined
    const { done, emitted } = startRun(
      (async function* () {
        yield* things(2)
        yield state('s')
        await new Promise<void>((resolve) => {
          go = resolve
        })
        yield streamEnd()
      })(),
      {
        ...sinksOf(sink),
        now: () => now,
        setTimer: (_, callback) => {
          timers.push(callback)
          return () => undefined
        },
      },
    )
    for (let n = 0; n < 5; n += 1) await nextTurn()
    expect(batches).toEqual([])
    now = 60_000
    for (const timer of timers) timer()
    for (let n = 0; n < 5; n += 1) await nextTurn()
    expect(batches).toEqual([['0', '1']])
    expect(emitted).toEqual(['s 2+0'])
    go()
    await done
  })

  it('waits for the batches in flight after a stop, sends nothing more, and emits the states they cover', async () => {
    const stop = new AbortController()
    const waiting: Array<() => void> = []
    const slowSink = sink((items) => new Promise((resolve) => waiting.push(() => resolve(E.right(acceptAll(items))))))
    const { done, emitted } = startRun([...things(10), state('s'), ...things(5, 10), state('t'), streamEnd()], {
      ...sinksOf(slowSink),
      stop: stop.signal,
      inFlight: 1,
    })
    while (waiting.length < 1) await nextTurn()
    stop.abort()
    waiting[0]?.()
    expect((await done).failures).toEqual([])
    expect(emitted).toEqual(['s 10+0'])
    expect(waiting).toHaveLength(1)
  })

  it('sends records of an earlier sink before the records that may refer to them', async () => {
    const order: Array<string> = []
    const recordingSink = (name: string) =>
      sink(async (items) => {
        order.push(...items.map(({ id }) => `${name} ${id}`))
        await new Promise((resolve) => setImmediate(resolve))
        return E.right(acceptAll(items))
      })
    const { done } = startRun(
      [record({ id: 'p' }, 'places'), ...things(10), streamEnd('visits'), streamEnd('places')],
      {
        streams: [streamOf('visits', 'visits'), streamOf('places', 'places')],
        sinks: new Map([
          ['places', recordingSink('place')],
          ['visits', recordingSink('visit')],
        ]),
      },
    )
    await done
    expect(order[0]).toBe('place p')
    expect(order).toHaveLength(11)
  })

  it('sends the final items of a sink only after a complete input', async () => {
    const finishCalls: Array<string> = []
    const sent: Array<string> = []
    const createFinalSink = () =>
      sink(
        async (items) => {
          sent.push(...items.map(({ id }) => id))
          return E.right(acceptAll(items))
        },
        (extent) => {
          finishCalls.push(extent)
          return E.right({ items: extent === 'whole' ? [{ item: { id: 'gone' }, key: 'gone' }] : [], notes: [] })
        },
      )
    const { countsByStream } = await startRun([...things(1), streamEnd('visits', true)], sinksOf(createFinalSink()))
      .done
    await startRun([...things(1), streamEnd('visits', false)], sinksOf(createFinalSink())).done
    await startRun([...things(1), incomplete], sinksOf(createFinalSink())).done
    expect(finishCalls).toEqual(['whole', 'changes'])
    expect(sent).toEqual(['0', 'gone', '0', '0'])
    expect(countsByStream.get('visits')).toEqual({ received: 1, accepted: 1, rejected: 0 })
  })

  it('fails for a stream whose object does not exist, and names both', async () => {
    const { failures } = await startRun([streamEnd('patients')], { streams: [streamOf('patients', 'patients')] }).done
    expect(failures).toMatchObject([{ _tag: 'Config', message: expect.stringMatching(/patients.*things/) }])
  })

  it('rejects if its output is broken', async () => {
    const broken = Object.assign(new Error('write EPIPE'), { code: 'EPIPE' })
    const { done } = startRun([...things(1), state('s'), streamEnd()], {
      emit: () => Promise.reject(broken),
    })
    await expect(done).rejects.toBe(broken)
  })
})

describe('a run says why it ends:', () => {
  const started = (name: string): Message => ({
    _tag: 'Started',
    stream: { name, schema: {}, primaryKey: ['id'], cursor: O.none, syncMode: 'incremental' },
  })
  const failuresOf = async (...given: Parameters<typeof startRun>) => {
    const { failures, inputFailures } = await startRun(...given).done
    return [...failures, ...inputFailures]
  }
  const visitsEnd =
    'visits: the input ended before the stream was complete. Records ' +
    'covered by its states are written. Run again to continue from there.'

  it.each<[string, ReadonlyArray<Message>, Partial<WriteRun>, Failure]>([
    [
      'an object does not exist',
      [streamEnd()],
      {
        streams: [streamOf('patients', 'patients')],
        sinks: new Map(['a', 'b'].map((name) => [name, createAcceptingSink().sink])),
      },
      configFailure(
        'The stream patients goes to the object patients, which does not exist. ' +
          'Name it a or b, or name its object under streams in the config.',
      ),
    ],
    [
      'a declared stream goes nowhere',
      [started('patients'), streamEnd()],
      {},
      configFailure(
        'The stream patients goes to the object patients, which does not exist. ' +
          'Name it things, or name its object under streams in the config.',
      ),
    ],
    [
      'records come of a stream that was not opened',
      [record({ id: '1' }, 'others'), streamEnd()],
      {},
      systemFailure('The stream others was not opened.'),
    ],
    [
      'the source failed as a whole',
      [{ _tag: 'Failed', failure: transientFailure('cut short') }, ...things(1), streamEnd()],
      {},
      transientFailure('cut short'),
    ],
    ['a stream did not end', things(1), {}, transientFailure(visitsEnd)],
    [
      'a stream failed after its end',
      [streamEnd(), incomplete],
      {},
      transientFailure(
        visitsEnd.replace(
          'the input ended before the stream was complete',
          'the source says that it did not complete the stream',
        ),
      ),
    ],
  ])('%s', async (_, messages, run, failure) => {
    expect(await failuresOf(messages, run)).toEqual([failure])
  })

  it('the input is broken, and nothing after it is read', async () => {
    const { batches, sink } = createAcceptingSink()
    const broken: WriteRun['input'] = async function* () {
      yield E.left(transientFailure('no line'))
      yield E.right([...things(3), streamEnd()])
    }
    expect(await failuresOf([], { ...sinksOf(sink), input: broken })).toEqual([transientFailure('no line')])
    expect(batches).toEqual([])
    const thrown = new Error('a mistake')
    const throwing: WriteRun['input'] = async function* () {
      yield E.right([...things(1)])
      throw thrown
    }
    expect(await failuresOf([], { input: throwing })).toEqual([unexpectedFailure(thrown)])
  })

  it('the dead letters cannot be written', async () => {
    const deadLetters = { add: () => undefined, flush: () => Promise.reject(new Error('ENOSPC')) }
    expect(await failuresOf([...things(1), state('s'), streamEnd()], { deadLetters })).toEqual([
      configFailure(
        'The dead-letter file cannot be written: ENOSPC. Free up space, or choose another dead_letter_path.',
      ),
    ])
  })

  it('a stream has too many rejections and another did not end', async () => {
    const wrong = Array.from({ length: 101 }, (_, n) => record({ id: String(n), bad: 'wrong' }, 'others'))
    const failures = await failuresOf([...things(1), ...wrong], {
      policy: { onReject: 'continue', maxPercent: 50 },
      streams: [streamOf('visits'), streamOf('others')],
    })
    expect(failures.map(({ message }) => message.slice(0, 40))).toEqual([
      'others: all 100 records were rejected. S',
      visitsEnd.slice(0, 40),
      'others: the input ended before the strea',
    ])
  })

  it('every stream has too many rejections, each with its own', async () => {
    const wrong = (stream: string) =>
      Array.from({ length: 101 }, (_, n) => record({ id: String(n), bad: 'wrong' }, stream))
    const failures = await failuresOf([...wrong('others'), ...wrong('visits'), streamEnd()], {
      streams: [streamOf('visits'), streamOf('others')],
    })
    expect(failures.map(({ message }) => message.slice(0, 30))).toEqual([
      'others: 100 of 100 records wer',
      'visits: 100 of 100 records wer',
    ])
  })
})

describe('the streams of a run', () => {
  const started = (name: string): Message => ({
    _tag: 'Started',
    stream: { name, schema: {}, primaryKey: ['id'], cursor: O.none, syncMode: 'incremental' },
  })

  it('are opened once where the catalog has them, and go to the objects that the config names', async () => {
    const opened: Array<string> = []
    const { sink } = createAcceptingSink()
    const watched: OpenSink<unknown> = {
      ...sink,
      prepare: (stream) => {
        opened.push(`${stream.name} ${stream.objectName}`)
        return sink.prepare(stream)
      },
    }
    const { done } = startRun(
      [
        started('visits'),
        started('others'),
        ...things(1),
        record({ id: '2' }, 'others'),
        streamEnd(),
        streamEnd('others'),
      ],
      { ...sinksOf(watched), objectNames: { others: 'things' } },
    )
    expect((await done).failures).toEqual([])
    expect(opened).toEqual(['visits things', 'others things'])
  })

  it('are counted though they had no record', async () => {
    const { countsByStream } = await startRun([streamEnd()]).done
    expect([...countsByStream]).toEqual([['visits', { received: 0, accepted: 0, rejected: 0 }]])
  })

  it('have records without values', async () => {
    const prepared: Array<unknown> = []
    const { sink } = createAcceptingSink()
    const watched: OpenSink<unknown> = {
      ...sink,
      prepare: () =>
        E.right((value) => {
          prepared.push(value)
          return E.left('empty')
        }),
    }
    const rows = [{ json: Buffer.from('{}') }]
    await startRun([{ _tag: 'Records', stream: 'visits', rows, at: 0 }, streamEnd()], sinksOf(watched)).done
    expect(prepared).toEqual([{}])
  })

  const [one, other] = [record({ id: '1' }), record({ id: '2' }, 'others')]
  const [allOfOne, allOfOther] = [streamEnd('visits', true), streamEnd('others', true)]
  it.each<[string, ReadonlyArray<Message>]>([
    ['whole', [one, other, allOfOne, allOfOther]],
    ['changes', [one, other, allOfOne, streamEnd('others', false)]],
    ['empty', [one, allOfOne, allOfOther]],
    ['empty', [allOfOne, allOfOther]],
    ['unsaid', [one, other, allOfOne]],
  ])('bring an object: %s, %j', async (extent, messages) => {
    const calls: Array<string> = []
    const finish: OpenSink<unknown>['finish'] = (given) => {
      calls.push(given)
      return E.right({ items: [], notes: [] })
    }
    const { sink: accepting } = createAcceptingSink()
    const sinks = new Map([
      ['things', { ...accepting, finish }],
      ['unused', { ...accepting, finish }],
    ])
    await startRun(messages, { sinks, saysEndings: false, streams: [streamOf('visits'), streamOf('others')] }).done
    expect(calls).toEqual([extent, 'changes'])
  })
})

describe('the end of a run', () => {
  const finishWith = (
    finish: OpenSink<unknown>['finish'],
    answer: (items: ReadonlyArray<unknown>) => BatchAnswer = acceptAll,
  ) => sink(async (items) => E.right(answer(items)), finish)

  it('logs the notes of the sinks, and what they find when they look at what was written', async () => {
    const entries: Array<string> = []
    const calls: Array<string> = []
    const noting: OpenSink<unknown> = {
      ...finishWith(() => {
        calls.push('finish')
        return E.right({ items: [], notes: [{ level: 'info', message: 'all written' }] })
      }),
      beforeFinish: async () => {
        calls.push('before')
      },
      verify: async () => {
        calls.push('verify')
        return [{ level: 'warn', message: 'one is missing' }]
      },
    }
    const log: WriteRun['log'] = (level, message) => entries.push(`${level} ${message}`)
    await startRun([streamEnd()], { ...sinksOf(noting), log }).done
    expect(calls).toEqual(['before', 'finish', 'verify'])
    expect(entries).toEqual(['info all written', 'warn one is missing'])
  })

  it('fails for a final item that is rejected, and for a sink that cannot finish', async () => {
    const gone = finishWith(
      () => E.right({ items: [{ item: { id: 'gone' }, key: 'gone' }], notes: [] }),
      (items) => ({ _tag: 'Verdicts', verdicts: items.map(() => ({ _tag: 'Rejected', reason: 'not found' })) }),
    )
    expect((await startRun([streamEnd()], sinksOf(gone)).done).failures).toEqual([
      configFailure('things: gone: not found.'),
    ])
    const broken = finishWith(() => E.left(transientFailure('no list')))
    const { sink: other } = createAcceptingSink()
    let isOtherFinished = false
    const sinks = new Map([
      ['things', broken],
      [
        'others',
        {
          ...other,
          finish: () => {
            isOtherFinished = true
            return E.right({ items: [], notes: [] })
          },
        },
      ],
    ])
    const entries: string[] = []
    const log = (level: string, message: string) => void entries.push(`${level} ${message}`)
    expect((await startRun([streamEnd()], { sinks, log }).done).failures).toEqual([transientFailure('no list')])
    expect([isOtherFinished, entries]).toEqual([true, []])
  })

  it('after a stop has no look at what was written, and nothing was read if it came first', async () => {
    const stop = new AbortController()
    stop.abort()
    let isVerified = false
    const { sink: accepting, batches } = createAcceptingSink()
    const watched: OpenSink<unknown> = {
      ...accepting,
      verify: async () => {
        isVerified = true
        return []
      },
    }
    const { failures } = await startRun([...things(30), streamEnd()], { ...sinksOf(watched), stop: stop.signal }).done
    expect([failures, batches, isVerified]).toEqual([[], [], false])
  })
})

it('reads no further than 64 MB ahead of what is acknowledged', async () => {
  let read = 0
  const waiting: Array<() => void> = []
  const slowSink = sink((items) => new Promise((resolve) => waiting.push(() => resolve(E.right(acceptAll(items))))))
  const long = (id: number): Message => ({
    _tag: 'Records',
    stream: 'visits',
    rows: [{ json: Buffer.from('{}'), value: { id: String(id) }, lineLength: 8_000_000 }],
    at: 0,
  })
  const { done } = startRun(
    (async function* () {
      for (; read < 30; read += 1) yield long(read)
      yield streamEnd()
    })(),
    { ...sinksOf(slowSink), batch: { count: 100, bytes: 16_000_000, millis: 60_000 }, inFlight: 30 },
  )
  for (let n = 0; n < 50; n += 1) await nextTurn()
  expect([read, waiting.length]).toEqual([7, 4])
  await answerAll(done, waiting)
  expect(read).toBe(30)
})

it('sends what waits for fuller batches when they take all the room', async () => {
  const { batches, sink: accepting } = createAcceptingSink()
  const rows = Array.from({ length: 60 }, (_, n) => ({ json: Buffer.from('{}'), value: { id: String(n % 2) } }))
  const { done } = startRun([{ _tag: 'Records', stream: 'visits', rows, at: 0 }, streamEnd()], {
    ...sinksOf(accepting),
    inFlight: 1,
  })
  expect((await done).failures).toEqual([])
  expect(batches.flat()).toHaveLength(60)
})
