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

describe('the page', () => {
  let snapshot: Snapshot
  beforeAll(async () => {
    snapshot = await openMemorySnapshot()
    await fillReviews(snapshot)
  })
  afterAll(() => snapshot.db.close())

  it('escapes whatever the data holds', async () => {
    const text = renderReport(await readReport(snapshot, emittedAt))
    expect(text.includes('&quot;&gt;&lt;script&gt;throw 1&lt;/script&gt;')).toBe(true)
    expect(text.match(/<(script|img|iframe|object|embed)\b/g)).toBe(null)
    expect(text.includes('what a patient said')).toBe(false)
  })

  it('is the same for the same data', async () => {
    const made = await readReport(snapshot, emittedAt)
    const [once, again] = [renderReport(made), renderReport(made)]
    expect(once === again).toBe(true)
  })

  it('names no address to fetch anything from', async () => {
    const text = renderReport(await readReport(snapshot, emittedAt))
    const names = [...text.matchAll(/\b(?:href|src)="([^"]*)"/g)].map(([, address]) => address)
    expect(names).toEqual(['data:,'])
    expect(text.match(/url\(|@import/g)).toBe(null)
  })

  it('says in each section which stream is missing', async () => {
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

  it('is made for a file into which nothing was loaded', async () => {
    const empty = await openMemorySnapshot()
    try {
      expect(renderReport(await readReport(empty, emittedAt))).toContain('Nothing was loaded into this file yet.')
    } finally {
      empty.db.close()
    }
  })
})

describe('html', () => {
  it('escapes parts and leaves HTML as it is', () => {
    const attack = `<a href='x' onclick="y">&`
    expect(html`<p title="${attack}">${[attack, html`<b>${1}</b>`]}${null}${undefined}</p>`.text).toBe(
      '<p title="&lt;a href=&#39;x&#39; onclick=&quot;y&quot;&gt;&amp;">&lt;a href=&#39;x&#39; onclick=&quot;y&quot;&gt;&amp;<b>1</b></p>',
    )
  })
})
