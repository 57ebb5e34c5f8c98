import { expect, test } from 'vitest'
import { gather, gathered, holds, nothing, recentSince } from '../../../connector/api/scan/recent'
import { cutOf } from './rows'

const page = (from: number, count: number): ReturnType<typeof cutOf>[] =>
  Array.from({ length: count }, (_, i) => cutOf(from + i, 1000 * (from + i)))

test('holds the very rows that were sent, to the byte', () => {
  const recent = recentSince(gather(nothing, page(1, 3), 0), 0)
  const isHeld = holds(recent)
  expect(page(1, 3).map(isHeld)).toEqual([true, true, true])
  expect(isHeld(cutOf(1, 1000, { rating: 4 }))).toBe(false)
  expect(isHeld(cutOf(1, 1001))).toBe(false)
  expect(isHeld(cutOf(4, 4000))).toBe(false)
})

test('tells nothing of what did not leave', () => {
  const sent = cutOf(1, 1000)
  const withheld = (words: string) => ({ ...sent, raw: Buffer.from(words) })
  expect(recentSince(gather(nothing, [withheld('fine')], 0), 0)).toEqual(
    recentSince(gather(nothing, [withheld('awful')], 0), 0),
  )
})

test('keeps only what the next filter will serve again', () => {
  const all = gather(nothing, page(1, 10), 0)
  expect(recentSince(all, 8000).map(([id]) => id)).toEqual(['8', '9', '10'])
  expect(recentSince(gather(all, page(11, 1), 10_000), 0).map(([id]) => id)).toEqual(['10', '11'])
})

test('gives up more than 1,000 rows, and starts again with later ones', () => {
  const full = gather(nothing, page(1, 1001), 0)
  expect(recentSince(full, 0)).toEqual([])
  const later = gather(full, [...page(900, 10), ...page(1002, 5)], 0)
  expect(recentSince(later, 0)).toEqual([])
  expect(recentSince(later, 1_002_000).map(([id]) => id)).toEqual(['1002', '1003', '1004', '1005', '1006'])
})

test('remembers the text that was sent first of a version, and the later version of a row', () => {
  const first = gather(nothing, [cutOf(1, 1000)], 0)
  const isHeld = holds(recentSince(gather(first, [cutOf(1, 1000, { rating: 4 })], 0), 0))
  expect([cutOf(1, 1000), cutOf(1, 1000, { rating: 4 })].map(isHeld)).toEqual([true, false])
  expect(recentSince(gather(first, [cutOf(1, 2000)], 0), 0).map(([, time]) => time)).toEqual([2000])
})

test('survives being written down', () => {
  const part = gather(nothing, page(1, 5), 0)
  const restored = gathered(part.horizon, JSON.parse(JSON.stringify(recentSince(part, 0))))
  expect(recentSince(gather(restored, page(6, 2), 0), 0)).toEqual(recentSince(gather(part, page(6, 2), 0), 0))
})

test('lets go of the bytes of earlier pages', () => {
  const two = gather(gather(nothing, page(1, 2), 0), page(3, 2), 0)
  expect([...two.rows.values()].map(({ text }) => typeof text)).toEqual(['string', 'string', 'object', 'object'])
})
