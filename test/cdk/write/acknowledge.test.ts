import fc from 'fast-check'
import * as O from 'fp-ts/Option'
import { describe, expect, it, vi } from 'vitest'
import { configFailure } from '../../../connector/cdk/failure'
import type { CheckpointMessage } from '../../../connector/cdk/message'
import {
  type AckError,
  type AckQueue,
  type AckQueueOptions,
  createAckQueue,
  type PendingRecord,
} from '../../../connector/cdk/write/acknowledge'
import { noDeadLetters } from '../../../connector/cdk/write/dead-letters'
import { draws } from '../../support/draws'

const streamOf = (id: string) => ({
  id,
  name: id,
  objectName: 'things',
  key: [],
  columns: O.none,
  isDeletion: false,
})
const state = (name: string, stream: string): CheckpointMessage => ({
  _tag: 'Checkpoint',
  stream,
  state: name,
  count: 0,
})
const sharedState: CheckpointMessage = { _tag: 'SharedCheckpoint', states: [] }
const printState = (checkpoint: CheckpointMessage): string => {
  const name = checkpoint._tag === 'Checkpoint' ? checkpoint.state : 'all'
  return `${name} ${checkpoint.counts?.accepted}+${checkpoint.counts?.rejected}`
}
const rejection = { key: null, reason: 'wrong', batch: null }

/**
 * A queue whose policy allows any number of rejections, with the lines it emitted (or tried to) and the errors it
 * reported.
 */
const createTestQueue = ({ emit = async () => undefined, ...more }: Partial<AckQueueOptions> = {}) => {
  const lines: Array<string> = []
  const errors: Array<AckError> = []
  const queue = createAckQueue({
    policy: { onReject: 'continue', maxPercent: 100 },
    deadLetters: noDeadLetters,
    now: () => 0,
    emit: async (checkpoint) => {
      lines.push(printState(checkpoint))
      await emit(checkpoint)
    },
    onError: (error) => errors.push(error),
    ...more,
  })
  const add = (id: string): PendingRecord => queue.addRecord(streamOf(id), { json: Buffer.from('{}') })
  const emitted = async (): Promise<ReadonlyArray<string>> => {
    queue.acknowledge()
    await queue.flush()
    return lines
  }
  return { queue, errors, add, emitted }
}

const complete = (queue: AckQueue, record: PendingRecord, isGood: boolean): void => {
  if (isGood) queue.accept(record)
  else queue.reject(record, rejection)
}

describe('the acknowledgement queue', () => {
  it('emits a state only after every record before it, whatever its stream', async () => {
    const { queue, add, emitted } = createTestQueue()
    const a = add('a')
    const b = add('b')
    queue.addState(state('s1', 'a'))
    const c = add('a')
    queue.addState(state('s2', 'a'))
    queue.accept(c)
    expect(await emitted()).toEqual([])
    queue.reject(a, rejection)
    expect(await emitted()).toEqual([])
    queue.accept(b)
    expect(await emitted()).toEqual(['s1 0+1', 's2 1+0'])
    expect(queue.pendingSize()).toEqual({ count: 0, bytes: 0 })
  })

  it('counts all streams for a shared state', async () => {
    const { queue, add, emitted } = createTestQueue()
    for (const id of ['a', 'b', 'b']) queue.accept(add(id))
    queue.addState(sharedState)
    expect(await emitted()).toEqual(['all 3+0'])
  })

  it('emits each state once, in order, and the counts add up, whatever record has its outcome first', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.constantFrom('a', 'b', 'state a', 'state b'), { maxLength: 80 }),
        fc.infiniteStream(fc.tuple(fc.nat(), fc.boolean())),
        async (events, chances) => {
          const { queue, add, emitted } = createTestQueue()
          const open: Array<PendingRecord> = []
          const sent = new Map<string, number>()
          const addCounted = (id: string): PendingRecord => {
            sent.set(id, (sent.get(id) ?? 0) + 1)
            return add(id)
          }
          // A stream that has only rejections holds its states back.
          for (const id of ['a', 'b']) queue.accept(addCounted(id))
          events.forEach((event, index) => {
            if (event.startsWith('state')) queue.addState(state(`${index} ${event.slice(6)}`, event.slice(6)))
            else open.push(addCounted(event))
          })
          for (const id of ['a', 'b']) queue.addState(state(`end ${id}`, id))
          while (open.length > 0) {
            const [nth, isGood] = chances.next().value ?? [0, true]
            const [record] = open.splice(nth % open.length, 1)
            if (record !== undefined) complete(queue, record, isGood)
            queue.acknowledge()
          }
          const lines = await emitted()
          const states = events.flatMap((event, index) =>
            event.startsWith('state') ? [`${index} ${event.slice(6)}`] : [],
          )
          expect(lines.map((line) => line.split(' ').slice(0, 2).join(' '))).toEqual([...states, 'end a', 'end b'])
          expect(queue.pendingSize()).toEqual({ count: 0, bytes: 0 })
          for (const id of ['a', 'b']) {
            const counts = lines
              .filter((line) => line.split(' ')[1] === id)
              .flatMap((line) => line.split(' ')[2]?.split('+').map(Number) ?? [])
            expect(counts.reduce((sum, count) => sum + count, 0)).toBe(sent.get(id))
          }
        },
      ),
      draws(200),
    )
  })

  it(
    'holds the states of a stream back while it has only ' +
      'rejections, and emits them after its first accepted record',
    async () => {
      const { queue, add, emitted } = createTestQueue()
      queue.reject(add('a'), rejection)
      queue.accept(add('b'))
      queue.addState(state('s', 'a'))
      queue.addState(state('t', 'b'))
      expect(await emitted()).toEqual(['t 1+0'])
      queue.accept(add('a'))
      expect(await emitted()).toEqual(['t 1+0', 's 0+1'])
    },
  )

  const sharedBy = (...names: ReadonlyArray<string>): CheckpointMessage => ({
    _tag: 'SharedCheckpoint',
    states: names.map((stream) => ({ stream, state: 1 })),
  })
  it.each<[string, ReadonlyArray<CheckpointMessage>, ReadonlyArray<string>]>([
    ['one that names no stream', [sharedState], []],
    ['one that names it', [sharedBy('b', 'a')], []],
    ['one that carries it forward', [sharedBy('a'), sharedBy('b')], []],
    ['one that names it but no other such stream', [sharedBy('b', 'c')], []],
    ['not one that never named it', [sharedBy('b'), sharedBy('b')], ['all 1+2', 'all 0+0']],
  ])('holds a shared state back while a stream has only rejections: %s', async (_, states, lines) => {
    const { queue, add, emitted } = createTestQueue()
    queue.reject(add('a'), rejection)
    queue.reject(add('c'), rejection)
    queue.accept(add('b'))
    for (const each of states) queue.addState(each)
    expect(await emitted()).toEqual(lines)
  })

  it('emits no state of a stream after one rejection too many, and those of others', async () => {
    const { queue, add, emitted } = createTestQueue({ policy: { onReject: 'continue', maxPercent: 10 } })
    for (let n = 0; n < 100; n += 1) queue.accept(add('a'))
    queue.accept(add('b'))
    queue.addState(state('before', 'a'))
    const failures = Array.from({ length: 12 }, () => queue.reject(add('a'), rejection))
    expect(failures.filter(O.isSome)).toHaveLength(1)
    queue.accept(add('b'))
    for (const id of ['a', 'b']) queue.addState(state('after', id))
    queue.addState(sharedState)
    expect(await emitted()).toEqual(['before 100+0', 'after 2+0'])
  })

  it('keeps a record pending whose rejection ends the run, so that no state covers it', async () => {
    const { queue, add, emitted } = createTestQueue({ policy: { onReject: 'fail', maxPercent: 100 } })
    queue.accept(add('a'))
    expect(queue.reject(add('a'), rejection)).toMatchObject(
      O.some({ _tag: 'Config', message: expect.stringContaining('a: record 2 was rejected: wrong') }),
    )
    queue.addState(state('s', 'a'))
    expect(await emitted()).toEqual([])
    expect(queue.pendingSize()).toEqual({ count: 2, bytes: '{}'.length + 64 })
    expect(queue.countsOf('a')).toEqual({ received: 2, accepted: 1, rejected: 1 })
  })

  it('writes a dead letter of a rejected record once, with the time and what its stream is', () => {
    const letters: Array<unknown> = []
    const { queue } = createTestQueue({
      now: () => 77,
      deadLetters: { ...noDeadLetters, add: (letter) => letters.push(letter) },
    })
    const stream = { ...streamOf('shop.visits'), name: 'visits', key: [['data', 'id']], isDeletion: true }
    const record = queue.addRecord(stream, { json: Buffer.from('{"id":1}') })
    expect(queue.reject(record, { key: 'k', reason: 'wrong', batch: 3 })).toEqual(O.none)
    expect(queue.reject(record, rejection)).toEqual(O.none)
    expect(letters).toEqual([
      {
        stream: 'shop.visits',
        object: 'things',
        primaryKey: [['data', 'id']],
        deletes: true,
        key: 'k',
        reason: 'wrong',
        batch: 3,
        when: 77,
        record: Buffer.from('{"id":1}'),
      },
    ])
    expect(queue.countsOf('shop.visits')).toEqual({ received: 1, accepted: 0, rejected: 1 })
    const again = queue.addRecord(
      { ...stream, id: 'shop.visits (2)', origin: 'shop.visits' },
      { json: Buffer.from('{}') },
    )
    queue.reject(again, rejection)
    expect(letters.at(-1)).toMatchObject({ stream: 'shop.visits' })
  })

  it('counts records from 1, the bytes that are held, and nothing of a stream that has none', () => {
    const { queue, add } = createTestQueue()
    expect(queue.countsOf('a')).toEqual({ received: 0, accepted: 0, rejected: 0 })
    const records = [add('a'), add('a'), queue.addRecord(streamOf('b'), { json: Buffer.from('{}'), lineLength: 500 })]
    expect(records.map(({ ordinal }) => ordinal)).toEqual([1, 2, 1])
    expect(queue.pendingSize()).toEqual({ count: 3, bytes: 2 * 66 + 500 })
    for (const record of records.slice(0, 2)) queue.accept(record)
    queue.acknowledge()
    expect(queue.pendingSize()).toEqual({ count: 1, bytes: 500 })
  })

  it('starts nothing for states that it holds back', async () => {
    let flushes = 0
    const flush = async (): Promise<void> => {
      flushes += 1
    }
    const { queue, add, emitted } = createTestQueue({ deadLetters: { ...noDeadLetters, flush } })
    queue.reject(add('a'), rejection)
    queue.addState(state('s', 'a'))
    queue.acknowledge()
    expect(await emitted()).toEqual([])
    expect(flushes).toBe(1)
  })

  it('holds as many entries as are pending, however many came', async () => {
    const { queue, add, emitted } = createTestQueue()
    const slice = vi.spyOn(Array.prototype, 'slice')
    for (let n = 0; n < 5000; n += 1) {
      const record = add('a')
      queue.addState(state(`s${n}`, 'a'))
      queue.accept(record)
      queue.acknowledge()
      expect(queue.pendingSize()).toEqual({ count: 0, bytes: 0 })
    }
    // Each time those are dropped that are done, which copies the others: not with every entry.
    const cuts = slice.mock.calls.filter(([from]) => typeof from === 'number' && from > 1000).length
    slice.mockRestore()
    expect(cuts).toBe(9)
    expect(await emitted()).toEqual(Array.from({ length: 5000 }, (_, n) => `s${n} 1+0`))
  })

  it('emits a shared state though another stream failed that it never named', async () => {
    const { queue, add, emitted } = createTestQueue({ policy: { onReject: 'continue', maxPercent: 0 } })
    for (let n = 0; n < 100; n += 1) queue.accept(add('a'))
    queue.reject(add('a'), rejection)
    queue.addState(sharedBy('b'))
    queue.addState(sharedBy('a'))
    expect(await emitted()).toEqual(['all 100+1'])
  })

  it('emits nothing without a state, and each only once', async () => {
    let flushes = 0
    const deadLetters = {
      ...noDeadLetters,
      flush: async () => {
        flushes += 1
      },
    }
    const { queue, add, emitted } = createTestQueue({ deadLetters })
    queue.accept(add('a'))
    queue.acknowledge()
    expect(await emitted()).toEqual([])
    expect(flushes).toBe(1)
    queue.addState(state('s', 'a'))
    expect(await emitted()).toEqual(['s 1+0'])
    expect(await emitted()).toEqual(['s 1+0'])
    expect(flushes).toBe(4)
  })

  it('keeps no text of a record that has its outcome, though another record before it is pending', () => {
    const { queue, add } = createTestQueue()
    add('a')
    const [b, c] = [add('b'), add('b')]
    queue.accept(b)
    queue.reject(c, rejection)
    expect([b.status, c.status]).toEqual([{ _tag: 'Accepted' }, { _tag: 'Rejected' }])
  })

  it.each<[string, Partial<AckQueueOptions>, AckError, ReadonlyArray<string>]>([
    [
      'the dead letters cannot be written',
      { deadLetters: { add: () => undefined, flush: () => Promise.reject(new Error('ENOSPC')) } },
      {
        _tag: 'DeadLetters',
        failure: configFailure(
          'The dead-letter file cannot be written: ENOSPC. Free up space, or choose another dead_letter_path.',
        ),
      },
      [],
    ],
    [
      'the dead letters cannot be written for a reason that is no error',
      { deadLetters: { add: () => undefined, flush: () => Promise.reject('a full disk') } },
      {
        _tag: 'DeadLetters',
        failure: configFailure(
          'The dead-letter file cannot be written: a full disk. Free up space, or choose another dead_letter_path.',
        ),
      },
      [],
    ],
    [
      'the output is broken',
      { emit: () => Promise.reject(new Error('EPIPE')) },
      { _tag: 'Output', error: new Error('EPIPE') },
      ['s 1+0'],
    ],
  ])('reports one error and emits nothing more if %s', async (_, options, error, lines) => {
    const { queue, add, errors, emitted } = createTestQueue(options)
    for (const name of ['s', 't']) {
      queue.accept(add('a'))
      queue.addState(state(name, 'a'))
      expect(await emitted()).toEqual(lines)
    }
    expect(errors).toEqual([error])
  })
})
