import * as fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { html, shortenText } from '../../connector/report/html'
import { renderReport } from '../../connector/report/page'
import { type Report, readReport } from '../../connector/report/report'
import { groupSections } from '../../connector/report/sections'
import { pageStyle } from '../../connector/report/style'
import type { Snapshot } from '../../connector/snapshot/store/database'
import { draws } from '../support/draws'
import { fillReviews, hostileText } from '../support/report-reviews'
import {
  deletedReviewsInfo,
  finishedMessage,
  openMemorySnapshot,
  startedMessage,
  writeMessages,
} from '../support/snapshot-messages'

const now = Date.parse('2026-07-01T00:00:00Z')
const emptyGroups = Object.fromEntries(Object.keys(groupSections).map((name) => [name, []]))

describe('renderReport', () => {
  let snapshot: Snapshot
  let report: Report
  beforeAll(async () => {
    snapshot = await openMemorySnapshot()
    await fillReviews(snapshot)
    report = await readReport(snapshot, {
      now,
      regions: [{ location_id: '1', location_name: null, region: hostileText }],
    })
  })
  afterAll(() => snapshot.db.close())

  it('escapes all text of the data', async () => {
    const text = renderReport(await readReport(snapshot, { now, withText: true }))
    for (const page of [text, renderReport(report)]) {
      expect(page.includes('&quot;&gt;&lt;script&gt;throw 1&lt;/script&gt;')).toBe(true)
      expect(page.match(/<(script|img|iframe|object|embed)\b/g)).toBe(null)
      expect(page.includes('what a patient said')).toBe(false)
    }
  })

  it('has what the reviewers wrote only if it is asked for', async () => {
    const withText = await readReport(snapshot, { now, withText: true })
    expect(renderReport(withText)).toContain('class="words"')
    expect(renderReport(report)).not.toContain('class="words"')
  })

  it('gives the same page for the same data', () => {
    const [first, second] = [renderReport(report), renderReport(report)]
    expect(first === second).toBe(true)
  })

  it('has no address to fetch anything from, and leads to each of its sections', () => {
    const text = renderReport(report)
    const addresses = [...text.matchAll(/\b(?:href|src)="([^"]*)"/g)].map(([, address = '']) => address)
    const ids = [...text.matchAll(/<h2 id="([^"]*)"/g)].map(([, id]) => `#${id}`)
    expect(addresses).toEqual(['data:,', ...ids])
    expect(new Set(ids).size).toBe(ids.length)
    expect(text.match(/url\(|@import/g)).toBe(null)
  })

  it('has what changed first, then alerts, open tasks, regions and the others, each heading once', () => {
    const text = renderReport(report)
    expect([...text.matchAll(/<h2[^>]*>([^<]*)/g)].map(([, title]) => title)).toEqual([
      'What changed',
      'Alerts',
      'Open tasks',
      'Regions',
      'Owners',
      'Locations',
      'Sources',
      'Providers',
      'Categories',
      'Response times',
      'Ratings',
      'Over time',
      'Health of the data',
    ])
    const levels = [...text.matchAll(/<h(\d)/g)].map(([, level]) => Number(level))
    expect(levels.filter((level, i) => i > 0 && level > (levels[i - 1] ?? 0) + 1)).toEqual([])
  })

  it('has a caption, heads of columns and a head of each row in every table', () => {
    const tables = [...renderReport(report).matchAll(/<table\srole="table">(.*?)<\/table>/gs)].map(
      ([, table = '']) => table,
    )
    expect(tables.length).toBeGreaterThan(10)
    for (const table of tables) {
      expect(table).toMatch(/^<caption>[^<]+/)
      const rows = [...table.matchAll(/<tr\srole="row">(.*?)<\/tr>/gs)].map(([, row = '']) => row)
      expect(rows[0]).toMatch(/^<th scope="col" role="columnheader"/)
      expect(rows.slice(1).filter((row) => !row.includes('<th scope="row"'))).toEqual([])
    }
  })

  it('marks only changes outside chance, by a sign and words, not by their colour alone', () => {
    const marked = (mark: 'better' | 'worse' | null) => {
      const test = { n: 90, previous_n: 90, p: 0.001, mark }
      const figures = { ...report.figures, average_rating: { value: 3, previous: 4, change: -1, test } }
      return renderReport({ ...report, figures })
    }
    expect(renderReport(report)).not.toMatch(/class="(better|worse)"/)
    expect(marked(null)).not.toMatch(/class="(better|worse)"/)
    expect(marked(null)).toContain('Nothing that is outside chance.')
    for (const [mark, sign] of [
      ['worse', '!'],
      ['better', '✓'],
    ] as const) {
      const changes = [...marked(mark).matchAll(/<span class="(better|worse)">(.*?)<\/span><\/span>/gs)]
      // Among the key figures, and in the list of changes.
      expect(changes.map(([, name]) => name)).toEqual([mark, mark])
      for (const [, , text = ''] of changes) {
        expect(text).toContain(`for the ${mark}`)
        expect(text.endsWith(sign)).toBe(true)
      }
    }
  })

  it('speaks of no option of the command', () => expect(renderReport(report)).not.toMatch(/--\w+ csv|--format/))

  it('shows a range where it is not known how many tasks were closed, and says so', () => {
    const test = { n: 40, previous_n: 40, p: 1, mark: null, range: [0.25, 0.5] as const }
    const figures = { ...report.figures, share_closed_7: { value: null, previous: 0.3, change: null, test } }
    const text = renderReport({ ...report, figures })
    expect(text).toContain('25 % to 50 %')
    expect(text).toContain('it is not known when some tasks were closed')
    expect(renderReport({ ...report, ...emptyGroups, figures: {} })).not.toContain('it is not known when')
  })

  it.each<[string, Partial<Report>, string]>([
    ['the stream of reviews', { data: null }, 'This file has no reviews: the stream reviews was not loaded into it.'],
    [
      'reviews',
      { data: { reviews: 0, undated: 0, first_month: null, last_month: null } },
      'the stream reviews is empty',
    ],
    [
      'mention times',
      { data: { reviews: 3, undated: 3, first_month: null, last_month: null } },
      'None of the 3 reviews of this file has a mention time.',
    ],
    [
      'reviews in the month',
      { month: '2019-01', figures: { reviews: { value: 0, previous: 0, change: 0 } } },
      'No review of this file was mentioned in January 2019. It has reviews from March 2024 to May 2026.',
    ],
    ['an end of the month', { is_over: false }, 'was not over when the reviews were read; its figures will change'],
  ])('says so without %s', (_case, part, text) => expect(renderReport({ ...report, ...part })).toContain(text))

  it('shows the health alone for a file without reviews, and says that nothing was loaded', async () => {
    const empty = await openMemorySnapshot()
    try {
      expect(renderReport(await readReport(empty, { now }))).toContain('Nothing was loaded into this file yet.')
      await writeMessages(empty, [startedMessage(deletedReviewsInfo()), finishedMessage('deleted_reviews')])
      const text = renderReport(await readReport(empty, { now }))
      expect([...text.matchAll(/<h2[^>]*>([^<]*)/g)].map(([, title]) => title)).toEqual(['Health of the data'])
      expect(text.match(/<h3>Undeclared|<svg/g)).toBe(null)
    } finally {
      empty.db.close()
    }
  })

  it('hatches the last month of the curves only if it was not over', () => {
    const hatched = (is_over: boolean) => renderReport({ ...report, is_over, ratings: [], response_times: [] })
    expect(hatched(false)).toMatch(/d="M[\d.]+ [\d.]+H[^"]*Z(M[^"]+L[^"]+)+" fill="none" stroke="var\(--accent\)"/)
    expect(hatched(false)).toContain('hatched, was not over when the reviews were read')
    expect(hatched(true)).not.toMatch(/hatched|var\(--hatch\)/)
    expect(hatched(false)).not.toContain('var(--hatch)')
  })

  it('shows the three best and the three last locations, with ticks on the axis of their intervals', () => {
    const [location] = report.location_estimates
    const location_estimates = Array.from({ length: 45 }, (_, i) => ({
      ...location,
      location_id: String(i),
      location_name: `Place ${i};`,
    }))
    const text = renderReport({ ...report, location_estimates } as Report)
    const shown = [...text.matchAll(/Place (\d+);/g)].map(([, i]) => Number(i))
    expect(shown).toEqual([...Array(3).keys(), ...Array.from({ length: 3 }, (_, i) => 42 + i)])
    expect(
      [...text.matchAll(/<div class="axis"[^>]*>(.*?)<\/div>/g)].every(
        ([, ticks]) => (ticks ?? '').split('<span').length > 2,
      ),
    ).toBe(true)
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
      '<p title="&lt;a href=&#39;x&#39; onclick=&quot;y&quot;&gt;&amp;">&lt;a ' +
        'href=&#39;x&#39; onclick=&quot;y&quot;&gt;&amp;<b>1</b></p>',
    )
  })
})

it('shortens a text to whole characters, and only one that is too long', () => {
  const texts = fc.string({ unit: fc.constantFrom('a', 'ä', '€', '𝒳', '👩🏽‍⚕️') })
  fc.assert(
    fc.property(texts, fc.integer({ min: 1, max: 20 }), (text, length) => {
      const short = shortenText(text, length)
      expect(short.length).toBeLessThanOrEqual(Math.max(length, 1))
      expect(Buffer.from(short).toString()).toBe(short)
      if (text.length <= length) expect(short).toBe(text)
      else
        expect([text.startsWith(short.slice(0, -1)), short.at(-1), short.length >= length - 1]).toEqual([
          true,
          '…',
          true,
        ])
    }),
    draws(100),
  )
})
