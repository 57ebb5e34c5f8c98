import { expect, it } from 'vitest'
import { beforeStop, untilStop } from '../../connector/cdk/stopping'

async function* endless() {
  for (let i = 0; ; i += 1) yield i
}

it('ends the items at the signal', async () => {
  const stop = new AbortController()
  const seen: number[] = []
  for await (const item of untilStop(stop.signal, endless())) {
    seen.push(item)
    if (item === 2) stop.abort()
  }
  expect(seen).toEqual([0, 1, 2])
})

it('does not wait for an item that never comes', async () => {
  const stop = new AbortController()
  setTimeout(() => stop.abort(), 5)
  expect(await beforeStop(stop.signal, new Promise(() => undefined))).toBeUndefined()
})

it('passes value and failure on, and takes its listener off', async () => {
  const stop = new AbortController()
  expect(await beforeStop(stop.signal, Promise.resolve(1))).toBe(1)
  await expect(beforeStop(stop.signal, Promise.reject(new Error('no')))).rejects.toThrow('no')
  stop.abort()
  expect(await beforeStop(stop.signal, Promise.resolve(1))).toBeUndefined()
})
