import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { html } from '../../../connector/snapshot/report/html'
import { readReport, renderReport } from '../../../connector/snapshot/report/report'
import type { Snapshot } from '../../../connector/snapshot/store/database'
import { fillReviews } from '../../support/report-reviews'
import {
  deletedReviewsInfo,
  emittedAt,
  finishedMessage,
  openMemorySnapshot,
  startedMessage,
  writeMessages,
} from '../../support/snapshot-messages'

describe('renderReport', () => {
  let snapshot: Snapshot
  beforeAll(async () => {
    snapshot = await openMemorySnapshot()
    await fillReviews(snapshot)
  })
  afterAll(() => snapshot.db.close())

  it('escapes all text of the data', async () => {
    const text = renderReport(await readReport(snapshot, emittedAt))
    expect(text.includes('&quot;&gt;&lt;script&gt;throw 1&lt;/script&gt;')).toBe(true)
    expect(text.match(/<(script|img|iframe|object|embed)\b/g)).toBe(null)
    expect(text.includes('what a patient said')).toBe(false)
  })

  it('gives the same page for the same data', async () => {
    const report = await readReport(snapshot, emittedAt)
    const [first, second] = [renderReport(report), renderReport(report)]
    expect(first === second).toBe(true)
  })

  it('has no address to fetch anything from', async () => {
    const text = renderReport(await readReport(snapshot, emittedAt))
    const addresses = [...text.matchAll(/\b(?:href|src)="([^"]*)"/g)].map(([, address]) => address)
    expect(addresses).toEqual(['data:,'])
    expect(text.match(/url\(|@import/g)).toBe(null)
  })

  it('names the missing stream in each section', async () => {
    const empty = await openMemorySnapshot()
    try {
      await writeMessages(empty, [startedMessage(deletedReviewsInfo()), finishedMessage('deleted_reviews')])
      const text = renderReport(await readReport(empty, emittedAt))
      expect(text.match(/does not hold the stream reviews/g)).toHaveLength(5)
      expect(text).toContain('neither the stream review_sentiments nor reviews with contents')
      expect(text.includes('<svg')).toBe(false)
    } finally {
      empty.db.close()
    }
  })

  it('gives a page for a file without loads', async () => {
    const empty = await openMemorySnapshot()
    try {
      expect(renderReport(await readReport(empty, emittedAt))).toContain('Nothing was loaded into this file yet.')
    } finally {
      empty.db.close()
    }
  })
})

describe('html', () => {
  it('escapes its parts and keeps HTML unchanged', () => {
    const attack = `<a href='x' onclick="y">&`
    expect(html`<p title="${attack}">${[attack, html`<b>${1}</b>`]}${null}${undefined}</p>`.text).toBe(
      '<p title="&lt;a href=&#39;x&#39; onclick=&quot;y&quot;&gt;&amp;">&lt;a href=&#39;x&#39; onclick=&quot;y&quot;&gt;&amp;<b>1</b></p>',
    )
  })
})
