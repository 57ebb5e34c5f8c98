import crypto from 'node:crypto'
import timers from 'node:timers'
import timersPromises from 'node:timers/promises'

/** Whose code runs: a process of the simulation, its service, or the world around them. */
export type Owner = {
  readonly name: string
  /** Nothing reaches an owner that has ended. */
  isAlive: boolean
  /** How far its wall clock is ahead of the world's, milliseconds. */
  wallOffset: number
}

export const createOwner = (name: string): Owner => ({ name, isAlive: true, wallOffset: 0 })

/** Something that happens at a simulated instant, to one owner. */
type SimulatedEvent = {
  readonly at: number
  readonly order: number
  readonly owner: Owner
  readonly kind: string
  readonly run: () => void
  isCancelled: boolean
}

/** What a step did. */
export type Step = { readonly at: number; readonly owner: Owner; readonly kind: string }

/** The simulated time and everything that is to happen in it. */
export type Realm = {
  /** Milliseconds since the world began. */
  readonly ticks: () => number
  /** The world's wall clock; milliseconds since 1970. */
  readonly wall: () => number
  /** Calls `run` in `delay` milliseconds, as code of `owner`; returns how to cancel it. */
  readonly schedule: (delay: number, owner: Owner, kind: string, run: () => void) => () => void
  /**
   * Runs the next event and waits until all that it caused in this process is done; undefined where nothing is left.
   */
  readonly step: () => Promise<Step | undefined>
  /** Runs `work` as code of `owner` and waits until all that it caused is done. */
  readonly runAs: (owner: Owner, work: () => void) => Promise<void>
  /** Whose code runs now. */
  readonly owner: () => Owner
  /** Begins another world: no events, time 0, random numbers of this seed. */
  readonly reset: (random: () => number) => void
}

/** When every world begins. */
const epoch = Date.parse('2026-03-02T06:00:00Z')

const world: Owner = createOwner('world')

/** The earliest event first; a heap, since a run has some hundred timers at a time and most are cancelled. */
const createQueue = () => {
  let heap: SimulatedEvent[] = []
  const isBefore = (a: SimulatedEvent, b: SimulatedEvent): boolean =>
    a.at < b.at || (a.at === b.at && a.order < b.order)
  const get = (i: number): SimulatedEvent => heap[i] as SimulatedEvent
  const swap = (i: number, j: number): void => {
    ;[heap[i], heap[j]] = [get(j), get(i)]
  }
  return {
    clear: (): void => {
      heap = []
    },
    push: (event: SimulatedEvent): void => {
      let i = heap.push(event) - 1
      for (let up = (i - 1) >> 1; i > 0 && isBefore(get(i), get(up)); up = (i - 1) >> 1) {
        swap(i, up)
        i = up
      }
    },
    pop: (): SimulatedEvent | undefined => {
      const [first] = heap
      const last = heap.pop()
      if (first === undefined || last === undefined || heap.length === 0) return first
      heap[0] = last
      for (let i = 0; ; ) {
        const [left, right] = [2 * i + 1, 2 * i + 2]
        let least = i
        if (left < heap.length && isBefore(get(left), get(least))) least = left
        if (right < heap.length && isBefore(get(right), get(least))) least = right
        if (least === i) return first
        swap(i, least)
        i = least
      }
    },
  }
}

const realSetImmediate = setImmediate

/**
 * Resolves once this process has nothing left to do: no promise, no file, no DuckDB query, no compression. Every timer
 * and socket is simulated, so only real work keeps the event loop alive, and Node reports when it is empty.
 */
const waitUntilIdle = (): Promise<void> =>
  new Promise((resolve) => {
    process.once('beforeExit', () => realSetImmediate(resolve))
    realSetImmediate(() => undefined)
  })

/** A timer as `setTimeout` returns it. */
const createTimer = (realm: Realm, callback: () => void, delay: number, repeats: boolean) => {
  const owner = realm.owner()
  const wait = Math.max(1, Math.trunc(delay) || 1)
  let cancel = (): void => undefined
  const start = (): void => {
    cancel = realm.schedule(wait, owner, 'timer', () => {
      if (repeats) start()
      callback()
    })
  }
  start()
  const timer = {
    ref: () => timer,
    unref: () => timer,
    hasRef: () => true,
    refresh: () => {
      cancel()
      start()
      return timer
    },
    close: () => {
      cancel()
      return timer
    },
    [Symbol.toPrimitive]: () => 0,
    [Symbol.dispose]: () => cancel(),
  }
  return timer
}

type Timer = { readonly close: () => unknown }

/** A promise that settles after `delay`, like those of `node:timers/promises`. */
const createDelay =
  (realm: Realm) =>
  (delay = 1, value?: unknown, { signal }: { readonly signal?: AbortSignal } = {}): Promise<unknown> =>
    new Promise((resolve, reject) => {
      const fail = (): void => {
        timer.close()
        reject(Object.assign(new Error('The operation was aborted'), { name: 'AbortError', code: 'ABORT_ERR' }))
      }
      const timer = createTimer(
        realm,
        () => {
          signal?.removeEventListener('abort', fail)
          resolve(value)
        },
        delay,
        false,
      )
      if (signal?.aborted === true) fail()
      else signal?.addEventListener('abort', fail, { once: true })
    })

/** Replaces the clocks, the timers and the random numbers of this process by simulated ones, for good. */
export const installRealm = (): Realm => {
  const queue = createQueue()
  let now = 0
  let count = 0
  let owner = world
  let random = (): number => 0

  const runAs = async (next: Owner, work: () => void): Promise<void> => {
    owner = next
    work()
    await waitUntilIdle()
    owner = world
  }
  const realm: Realm = {
    ticks: () => now,
    wall: () => epoch + Math.floor(now),
    schedule: (delay, of, kind, run) => {
      count += 1
      const event = { at: now + Math.max(0, delay), order: count, owner: of, kind, run, isCancelled: false }
      queue.push(event)
      return () => {
        event.isCancelled = true
      }
    },
    step: async () => {
      for (let event = queue.pop(); event !== undefined; event = queue.pop()) {
        if (event.isCancelled || !event.owner.isAlive) continue
        now = event.at
        await runAs(event.owner, event.run)
        return event
      }
      return undefined
    },
    runAs,
    owner: () => owner,
    reset: (next) => {
      queue.clear()
      now = 0
      count = 0
      random = next
    },
  }

  const wall = (): number => realm.wall() + owner.wallOffset
  const RealDate = Date
  RealDate.now = wall
  globalThis.Date = new Proxy(RealDate, {
    construct: (target, args, newTarget) => Reflect.construct(target, args.length === 0 ? [wall()] : args, newTarget),
    apply: () => new RealDate(wall()).toString(),
  })
  performance.now = () => now
  Math.random = () => random()
  const hex = (length: number): string => Array.from({ length }, () => Math.floor(random() * 16).toString(16)).join('')
  const randomUUID = () => `${hex(8)}-${hex(4)}-4${hex(3)}-a${hex(3)}-${hex(12)}` as const
  Object.assign(crypto, { randomUUID })
  Object.defineProperty(globalThis.crypto, 'randomUUID', { value: randomUUID })

  const clear = (timer: Timer | undefined): void => void timer?.close?.()
  const fake = {
    setTimeout: (callback: (...args: unknown[]) => void, delay = 1, ...args: ReadonlyArray<unknown>) =>
      createTimer(realm, () => callback(...args), delay, false),
    setInterval: (callback: (...args: unknown[]) => void, delay = 1, ...args: ReadonlyArray<unknown>) =>
      createTimer(realm, () => callback(...args), delay, true),
    setImmediate: (callback: (...args: unknown[]) => void, ...args: ReadonlyArray<unknown>) =>
      createTimer(realm, () => callback(...args), 0, false),
    clearTimeout: clear,
    clearInterval: clear,
    clearImmediate: clear,
  }
  Object.assign(globalThis, fake)
  Object.assign(timers, fake)
  const delay = createDelay(realm)
  Object.assign(timersPromises, {
    setTimeout: delay,
    setImmediate: (value?: unknown, options = {}) => delay(0, value, options),
  })
  return realm
}
