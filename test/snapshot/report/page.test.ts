import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { html, pageStyle } from '../../../connector/snapshot/report/html'
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

  it('shows nothing for sections without data', async () => {
    const empty = await openMemorySnapshot()
    try {
      await writeMessages(empty, [startedMessage(deletedReviewsInfo()), finishedMessage('deleted_reviews')])
      const text = renderReport(await readReport(empty, emittedAt))
      expect([...text.matchAll(/<h2>([^<]*)/g)].map(([, title]) => title)).toEqual(['Health of the data'])
      expect(text.match(/<h3>Undeclared|<svg|does not hold/g)).toBe(null)
    } finally {
      empty.db.close()
    }
  })

  it('gives times, not ages that stand still', async () => {
    const text = renderReport(await readReport(snapshot, emittedAt))
    expect(text.match(/\d (s|min|h|d) ago/g)).toBe(null)
    expect(text.includes('2026-01-02')).toBe(true)
  })

  it('hatches the last period only if it was not over when the reviews were read', async () => {
    const report = await readReport(snapshot, emittedAt)
    const withLast = (lastIsIncomplete: boolean) =>
      renderReport({ ...report, reviews: report.reviews && { ...report.reviews, lastIsIncomplete } })
    expect(withLast(true)).toMatch(/d="M[\d.]+ [\d.]+H[^"]*Z(M[^"]+L[^"]+){2}" fill="none" stroke="var\(--accent\)"/)
    expect(withLast(true)).toContain('hatched, was not over when the reviews were read')
    expect(withLast(false)).not.toMatch(/hatched|var\(--hatch\)/)
    expect(withLast(true)).not.toContain('var(--hatch)')
  })

  it('shows the ten best and the ten last locations, with ticks on the axis of their intervals', async () => {
    const report = await readReport(snapshot, emittedAt)
    const [location] = report.locations ?? []
    const locations = Array.from({ length: 45 }, (_, i) => ({ ...location, id: String(i), name: `Place ${i};` }))
    const text = renderReport({ ...report, locations } as typeof report)
    const shown = [...text.matchAll(/Place (\d+);/g)].map(([, i]) => Number(i))
    expect(shown).toEqual([...Array(10).keys(), ...Array.from({ length: 10 }, (_, i) => 35 + i)])
    expect(
      [...text.matchAll(/<div class="axis">(.*?)<\/div>/g)].every(
        ([, ticks]) => (ticks ?? '').split('<span').length > 2,
      ),
    ).toBe(true)
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

describe('the colours of the page', () => {
  const luminance = (hex: string) => {
    const digits = hex.length === 4 ? [...hex.slice(1)].map((c) => c + c).join('') : hex.slice(1)
    const [r = 0, g = 0, b = 0] = [0, 2, 4]
      .map((i) => Number.parseInt(digits.slice(i, i + 2), 16) / 255)
      .map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
  }
  const contrast = (a = '', b = '') => {
    const [light = 0, dark = 0] = [luminance(a), luminance(b)].sort((x, y) => y - x)
    return (light + 0.05) / (dark + 0.05)
  }
  const themes = [...pageStyle.matchAll(/:root \{([^}]*--paper[^}]*)\}/g)].map(([, block]) =>
    Object.fromEntries([...(block ?? '').matchAll(/--([\w-]+): (#[0-9a-f]+)/g)].map(([, name, hex]) => [name, hex])),
  )

  it.each(['light', 'dark'])('have a contrast of 4.5 at least between text and what it stands on: %s', (theme) => {
    const colors = themes[theme === 'light' ? 0 : 1] ?? {}
    const onPaper = ['ink', 'muted', 'positive', 'high'].map(
      (name) => [name, contrast(colors[name], colors.paper)] as const,
    )
    const onColor = Object.keys(colors)
      .filter((name) => name.startsWith('on-'))
      .map((name) => [name, contrast(colors[name], colors[name.slice(3)])] as const)
    expect(onColor.length).toBeGreaterThan(5)
    expect([...onPaper, ...onColor].filter(([, ratio]) => !(ratio >= 4.5))).toEqual([])
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
