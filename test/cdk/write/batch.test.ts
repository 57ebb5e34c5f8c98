import fc from 'fast-check'
import * as E from 'fp-ts/Either'
import { describe, expect, it } from 'vitest'
import { type Failure, transientFailure, unexpectedFailure } from '../../../connector/cdk/failure'
import type { BatchAnswer, OpenSink } from '../../../connector/cdk/sink'
import { type BatchersOptions, type BatchItem, createBatchers, takeBatch } from '../../../connector/cdk/write/batch'
import { draws } from '../../support/draws'

const item = (key: string, bytes = 1): BatchItem => ({ key, bytes, queuedAt: 0 })
const size = { count: 3, bytes: 10 }
const none: ReadonlySet<string> = new Set()

describe('takeBatch', () => {
  it.each<[string, ReadonlyArray<BatchItem>, ReadonlySet<string>, boolean, ReadonlyArray<string>]>([
    ['takes nothing before the batch is full', [item('a'), item('b')], none, false, []],
    ['takes a batch that is full by count', [item('a'), item('b'), item('c'), item('d')], none, false, ['a', 'b', 'c']],
    ['takes a batch that is full by bytes', [item('a', 6), item('b', 6), item('c')], none, false, ['a']],
    ['takes an item alone that is longer than a batch', [item('a', 99)], none, false, ['a']],
    ['takes what there is on a flush', [item('a'), item('b')], none, true, ['a', 'b']],
    ['takes a batch that is full to the byte', [item('a', 6), item('b', 4), item('c')], none, false, ['a', 'b']],
    ['takes nothing after an item that does not fit', [item('a', 6), item('b', 6), item('c')], none, true, ['a']],
    ['takes an item of no bytes with others', [item('a', 0), item('b', 10)], none, false, ['a', 'b']],
    ['takes nothing of an empty queue', [], none, true, []],
    [
      'leaves all items of a key behind the first in flight',
      [item('a'), item('a'), item('b')],
      new Set(['a']),
      true,
      ['b'],
    ],
    ['leaves the second item of a key', [item('a'), item('a'), item('b')], none, true, ['a', 'b']],
    ['leaves the items of a key in flight', [item('a'), item('b')], new Set(['a']), true, ['b']],
  ])('%s', (_, queue, keysInFlight, flush, keys) => {
    expect(takeBatch(queue, size, keysInFlight, flush).batch.map(({ key }) => key)).toEqual(keys)
  })

  it('loses nothing, keeps the order of each key and never has two items of a key in a batch or in flight', () => {
    const counts = { taken: 0, left: 0 }
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.constantFrom('a', 'b', 'c', 'd', 'e'), fc.integer({ min: 1, max: 6 }))),
        fc.subarray(['a', 'b', 'c']),
        fc.boolean(),
        (items, keysInFlight, flush) => {
          const queue = items.map(([key, bytes], position) => ({ key, bytes, queuedAt: 0, position }))
          const { batch, rest } = takeBatch(queue, size, new Set(keysInFlight), flush)
          counts.taken += batch.length
          counts.left += rest.length
          const ascending = (a: number, b: number) => a - b
          expect([...batch, ...rest].map(({ position }) => position).sort(ascending)).toEqual(queue.map((_, n) => n))
          expect(rest.map(({ position }) => position)).toEqual(rest.map(({ position }) => position).sort(ascending))
          expect(new Set(batch.map(({ key }) => key)).size).toBe(batch.length)
          for (const { key, position } of batch) {
            expect(keysInFlight).not.toContain(key)
            expect(rest.filter((other) => other.key === key && other.position < position)).toEqual([])
          }
          expect(batch.length).toBeLessThanOrEqual(size.count)
          const bytes = batch.reduce((sum, one) => sum + one.bytes, 0)
          expect(batch.length <= 1 || bytes <= size.bytes).toBe(true)
        },
      ),
      draws(500),
    )
    expect(counts.taken).toBeGreaterThan(300)
    expect(counts.left).toBeGreaterThan(300)
  })
})

describe('a batcher', () => {
  const acceptAll = (items: ReadonlyArray<unknown>): BatchAnswer => ({
    _tag: 'Verdicts',
    verdicts: items.map(() => ({ _tag: 'Accepted' })),
  })
  const flushEvents = () => new Promise((resolve) => setImmediate(resolve))

  /** Batchers of two sinks, `places` before `visits`, whose batches of three items wait for `answer`. */
  const start = (inFlight = 2, answerOf: (items: ReadonlyArray<unknown>) => BatchAnswer = acceptAll) => {
    const clock = { now: 1000 }
    const sent: Array<
      readonly [string, ReadonlyArray<unknown>, (answer?: E.Either<Failure, BatchAnswer> | Error) => void]
    > = []
    const timers: Array<{ readonly millis: number; readonly callback: () => void; cancelled: boolean }> = []
    const log: Array<string> = []
    const failures: Array<Failure> = []
    const sinkOf = (name: string): OpenSink<unknown> => ({
      prepare: () => E.right(() => E.left('not used')),
      write: (items) => () =>
        new Promise((resolve, reject) =>
          sent.push([
            name,
            items,
            (answer = E.right(answerOf(items))) => (answer instanceof Error ? reject(answer) : resolve(answer)),
          ]),
        ),
      isReachable: async () => true,
      finish: () => E.right({ items: [], notes: [] }),
    })
    const options: BatchersOptions = {
      sinks: new Map(['places', 'visits'].map((name) => [name, sinkOf(name)])),
      batch: { count: 3, bytes: 100, millis: 50 },
      inFlight,
      now: () => clock.now,
      setTimer: (millis, callback) => {
        const timer = { millis, callback, cancelled: false }
        timers.push(timer)
        return () => {
          timer.cancelled = true
        }
      },
      onVerdict: ({ key }, { _tag }, batch) => log.push(`${key} ${_tag} ${batch}`),
      onDelivery: (failure) => {
        log.push('delivered')
        if (failure !== undefined) failures.push(failure)
      },
    }
    const batchers = createBatchers(options)
    const batcher = (name: string) => {
      const found = batchers.get(name)
      if (found === undefined) throw new Error(name)
      const add = (keys: string, bytes = 1): void => {
        for (const key of keys)
          found.add({ key, item: key, objectName: name, record: undefined, bytes, queuedAt: clock.now })
      }
      const send = (keys: string, bytes = 1): void => {
        add(keys, bytes)
        found.sendReady()
      }
      return { ...found, add, send }
    }
    const sentBatches = () => sent.map(([name, items]) => `${name} ${items.join('')}`)
    const answer = async (nth: number, given?: E.Either<Failure, BatchAnswer> | Error) => {
      sent[nth]?.[2](given)
      await flushEvents()
    }
    return { places: batcher('places'), visits: batcher('visits'), clock, timers, log, failures, sentBatches, answer }
  }

  it('sends a batch once it is full, by count or by bytes', () => {
    const { places, sentBatches } = start()
    expect([places.isEmpty(), places.isSending()]).toEqual([true, false])
    places.send('ab')
    expect([sentBatches(), places.isEmpty(), places.isSending()]).toEqual([[], false, false])
    places.send('c')
    expect([sentBatches(), places.isEmpty(), places.isSending()]).toEqual([['places abc'], false, true])
    places.send('d', 100)
    expect(sentBatches()).toEqual(['places abc', 'places d'])
  })

  it('counts the bytes of what it has left', () => {
    const { places, sentBatches } = start(9)
    places.send('ab', 60)
    expect(sentBatches()).toEqual(['places a'])
    places.send('c', 39)
    expect(sentBatches()).toEqual(['places a'])
    places.send('d', 1)
    expect(sentBatches()).toEqual(['places a', 'places bcd'])
    const other = start(9)
    other.places.send('ab', 60)
    other.places.send('c', 40)
    expect(other.sentBatches()).toEqual(['places a', 'places bc'])
  })

  it('gives each item its verdict and the number of its batch, then reports its delivery', async () => {
    const { places, visits, log, failures, answer } = start()
    places.send('abc')
    visits.send('xyz')
    await answer(0)
    visits.send('')
    await answer(1)
    expect(log).toEqual([
      ...['a Accepted 1', 'b Accepted 1', 'c Accepted 1', 'delivered'],
      ...['x Accepted 2', 'y Accepted 2', 'z Accepted 2', 'delivered'],
    ])
    expect([places.isEmpty(), places.isSending(), failures]).toEqual([true, false, []])
  })

  const mistake = new Error('a mistake')
  it.each<[string, E.Either<Failure, BatchAnswer> | Error, Failure]>([
    ['a failure', E.left(transientFailure('gone')), transientFailure('gone')],
    ['an error', mistake, unexpectedFailure(mistake)],
  ])('tells %s, and has its slot again', async (_, given, failure) => {
    const { places, log, failures, answer, sentBatches } = start(1)
    places.send('abc')
    places.send('def')
    expect(sentBatches()).toEqual(['places abc'])
    await answer(0, given)
    expect([log, failures]).toEqual([['delivered'], [failure]])
    places.sendReady()
    expect(sentBatches()).toEqual(['places abc', 'places def'])
  })

  it('shares the slots with the other batchers', async () => {
    const { places, visits, answer, sentBatches } = start(1)
    places.send('abc')
    await answer(0)
    visits.send('xyz')
    places.send('def')
    expect(sentBatches()).toEqual(['places abc', 'visits xyz'])
    await answer(1)
    places.sendReady()
    expect(sentBatches()).toEqual(['places abc', 'visits xyz', 'places def'])
  })

  it('sends every batch that is full at once', () => {
    const { places, sentBatches } = start(9)
    places.send('abcdefg')
    expect(sentBatches()).toEqual(['places abc', 'places def'])
  })

  it('sends smaller batches once the service refuses one for its size', async () => {
    const { places, answer, sentBatches } = start(1, (items) =>
      items.length > 1 ? { _tag: 'Refused', reason: 'too many', tooLarge: true } : acceptAll(items),
    )
    places.send('abc')
    for (let n = 0; n < 5; n += 1) await answer(n)
    expect(places.isSending()).toBe(false)
    places.send('d')
    expect(sentBatches()).toEqual(['places abc', 'places ab', 'places a', 'places b', 'places c', 'places d'])
  })

  it('keeps an item back while one of its key is in flight, without a slot', async () => {
    const { places, visits, answer, sentBatches } = start(2)
    places.send('abc')
    places.send('aaa')
    expect(sentBatches()).toEqual(['places abc'])
    await answer(0)
    places.flush()
    expect(sentBatches()).toEqual(['places abc', 'places a'])
    await answer(1)
    places.sendReady()
    expect(sentBatches()).toEqual(['places abc', 'places a', 'places a'])
    await answer(2)
    places.sendReady()
    await answer(3)
    visits.send('xyz')
    visits.send('uvw')
    expect(sentBatches().slice(4)).toEqual(['visits xyz', 'visits uvw'])
  })

  it('sends what waits on a flush, and later items wait again', async () => {
    const { places, sentBatches, answer } = start()
    places.flush()
    places.send('a')
    expect(sentBatches()).toEqual([])
    places.flush()
    expect(sentBatches()).toEqual(['places a'])
    await answer(0)
    places.send('b')
    expect(sentBatches()).toEqual(['places a'])
    places.add('cd')
    places.flush()
    expect(sentBatches()).toEqual(['places a', 'places bcd'])
  })

  it('sends what is old enough, and sets one timer for the oldest item', () => {
    const { places, clock, timers, sentBatches } = start()
    places.send('a')
    clock.now += 20
    places.send('b')
    expect(timers.map(({ millis }) => millis)).toEqual([50])
    clock.now += 29
    timers[0]?.callback()
    expect(sentBatches()).toEqual([])
    expect(timers.map(({ millis }) => millis)).toEqual([50, 1])
    clock.now += 1
    timers[1]?.callback()
    expect(sentBatches()).toEqual(['places ab'])
    expect(timers).toHaveLength(2)
    places.send('c')
    expect(timers.map(({ millis }) => millis)).toEqual([50, 1, 50])
  })

  it('sets no timer for an item that is old enough already, or is being flushed', () => {
    const { places, clock, timers, sentBatches } = start(1)
    places.send('abc')
    places.add('d')
    clock.now += 50
    places.sendReady()
    expect([timers.length, sentBatches()]).toEqual([0, ['places abc']])
    const other = start(1)
    other.places.send('abc')
    other.places.add('d')
    other.places.flush()
    expect([other.timers.length, other.sentBatches()]).toEqual([0, ['places abc']])
  })

  it('sends full batches at once although a timer is set', () => {
    const { places, sentBatches, timers } = start(9)
    places.send('a')
    places.send('bc')
    places.send('d')
    places.add('e')
    places.flush()
    expect(timers).toHaveLength(1)
    expect(sentBatches()).toEqual(['places abc', 'places de'])
    const other = start(9)
    other.places.send('a')
    other.places.send('bcd')
    expect([other.timers.length, other.sentBatches()]).toEqual([1, ['places abc']])
  })

  it('lets the items of the sinks before it go first', async () => {
    const { places, visits, sentBatches, answer } = start(9)
    places.send('a')
    visits.send('x')
    expect(sentBatches()).toEqual([])
    visits.send('yz')
    expect(sentBatches()).toEqual(['places a'])
    visits.sendReady()
    expect(sentBatches()).toEqual(['places a'])
    await answer(0)
    visits.sendReady()
    expect(sentBatches()).toEqual(['places a', 'visits xyz'])
  })

  it('sends nothing more once it is stopped, and waits for what is in flight', async () => {
    const { places, timers, sentBatches, answer, log } = start(9)
    places.send('abc')
    places.send('d')
    places.stop()
    expect([timers.map(({ cancelled }) => cancelled), places.isEmpty()]).toEqual([[true], false])
    await answer(0)
    expect([places.isEmpty(), log.length]).toEqual([true, 4])
    places.send('efg')
    places.flush()
    expect([sentBatches(), timers.length]).toEqual([['places abc'], 1])
    expect(() => start().places.stop()).not.toThrow()
  })
})
