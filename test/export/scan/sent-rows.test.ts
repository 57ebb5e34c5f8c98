import { expect, test } from 'vitest'
import {
  collectSentRows,
  emptyCollector,
  matchesSentRow,
  restoreCollector,
  sentRowsSince,
} from '../../../connector/export/scan/sent-rows'
import { reviewRecord } from '../../support/export-record'

const page = (from: number, count: number): ReturnType<typeof reviewRecord>[] =>
  Array.from({ length: count }, (_, i) => reviewRecord(from + i, 1000 * (from + i)))

test('recognises exactly the rows that were sent, to the byte', () => {
  const sentRows = sentRowsSince(collectSentRows(emptyCollector, page(1, 3), 0), 0)
  const isSent = matchesSentRow(sentRows)
  expect(page(1, 3).map(isSent)).toEqual([true, true, true])
  expect(isSent(reviewRecord(1, 1000, { rating: 4 }))).toBe(false)
  expect(isSent(reviewRecord(1, 1001))).toBe(false)
  expect(isSent(reviewRecord(4, 4000))).toBe(false)
})

test('reveals nothing of text that did not leave', () => {
  const sent = reviewRecord(1, 1000)
  const withHiddenText = (words: string) => ({ ...sent, raw: Buffer.from(words) })
  expect(sentRowsSince(collectSentRows(emptyCollector, [withHiddenText('fine')], 0), 0)).toEqual(
    sentRowsSince(collectSentRows(emptyCollector, [withHiddenText('awful')], 0), 0),
  )
})

test('keeps only the rows that the next filter serves again', () => {
  const all = collectSentRows(emptyCollector, page(1, 10), 0)
  expect(sentRowsSince(all, 8000).map(([id]) => id)).toEqual(['8', '9', '10'])
  expect(sentRowsSince(collectSentRows(all, page(11, 1), 10_000), 0).map(([id]) => id)).toEqual(['10', '11'])
})

test('drops all rows if there are more than 1,000, and starts again with later ones', () => {
  const full = collectSentRows(emptyCollector, page(1, 1001), 0)
  expect(sentRowsSince(full, 0)).toEqual([])
  const later = collectSentRows(full, [...page(900, 10), ...page(1002, 5)], 0)
  expect(sentRowsSince(later, 0)).toEqual([])
  expect(sentRowsSince(later, 1_002_000).map(([id]) => id)).toEqual(['1002', '1003', '1004', '1005', '1006'])
})

test('keeps the first text of a version, and the later version of a row', () => {
  const first = collectSentRows(emptyCollector, [reviewRecord(1, 1000)], 0)
  const isSent = matchesSentRow(sentRowsSince(collectSentRows(first, [reviewRecord(1, 1000, { rating: 4 })], 0), 0))
  expect([reviewRecord(1, 1000), reviewRecord(1, 1000, { rating: 4 })].map(isSent)).toEqual([true, false])
  expect(sentRowsSince(collectSentRows(first, [reviewRecord(1, 2000)], 0), 0).map(([, time]) => time)).toEqual([2000])
})

test('is the same after a restart', () => {
  const part = collectSentRows(emptyCollector, page(1, 5), 0)
  const restored = restoreCollector(part.horizon, JSON.parse(JSON.stringify(sentRowsSince(part, 0))))
  expect(sentRowsSince(collectSentRows(restored, page(6, 2), 0), 0)).toEqual(
    sentRowsSince(collectSentRows(part, page(6, 2), 0), 0),
  )
})

test('keeps only digests of earlier pages', () => {
  const two = collectSentRows(collectSentRows(emptyCollector, page(1, 2), 0), page(3, 2), 0)
  expect([...two.rows.values()].map(({ text }) => typeof text)).toEqual(['string', 'string', 'object', 'object'])
})
