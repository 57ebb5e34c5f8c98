import { expect, it } from 'vitest'
import { awaitUntilAbort, takeUntilAbort } from '../../connector/cdk/abort'

async function* endless() {
  for (let i = 0; ; i += 1) yield i
}

it('ends the items at the signal', async () => {
  const stop = new AbortController()
  const seen: number[] = []
  for await (const item of takeUntilAbort(stop.signal, endless())) {
    seen.push(item)
    if (item === 2) stop.abort()
  }
  expect(seen).toEqual([0, 1, 2])
})

it('does not wait for an item that never comes', async () => {
  const stop = new AbortController()
  setTimeout(() => stop.abort(), 5)
  expect(await awaitUntilAbort(stop.signal, new Promise(() => undefined))).toBeUndefined()
})

it('passes value and failure on, and removes its listener', async () => {
  const stop = new AbortController()
  expect(await awaitUntilAbort(stop.signal, Promise.resolve(1))).toBe(1)
  await expect(awaitUntilAbort(stop.signal, Promise.reject(new Error('no')))).rejects.toThrow('no')
  stop.abort()
  expect(await awaitUntilAbort(stop.signal, Promise.resolve(1))).toBeUndefined()
})

it('asks for no item after the signal', async () => {
  let asked = 0
  const counting = (async function* () {
    for (;;) {
      asked += 1
      yield asked
    }
  })()
  for await (const _ of takeUntilAbort(AbortSignal.abort(), counting)) throw new Error('an item after the signal')
  expect(asked).toBe(0)
})
