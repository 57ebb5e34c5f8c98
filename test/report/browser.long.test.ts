import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { reportCommand } from '../../connector/cli/report'
import type { FigureGroup } from '../../connector/report/comparisons'
import type { Figures } from '../../connector/report/figures'
import type { RunStatistics, StreamHealth } from '../../connector/report/health'
import type { WorkList } from '../../connector/report/open-work'
import { renderReport } from '../../connector/report/page'
import { type Report, readReport } from '../../connector/report/report'
import { pageStyle } from '../../connector/report/style'
import { closeSnapshot } from '../../connector/snapshot/store/file'
import { type Browser, hasChromium, startChromium, type Tab } from '../support/chromium'
import { readPdfPages } from '../support/pdf'
import { fillReviews } from '../support/report-reviews'
import { runCommand } from '../support/run-command'
import { openSnapshotFile } from '../support/snapshot-messages'

const screenshotFolder = join(__dirname, '..', '..', 'build', 'screenshots')
const chromiumExists = hasChromium()
if (!chromiumExists)
  console.warn(
    'The report is not tested in a browser: chromium is not installed. Install it with apt-get install chromium.',
  )

type AxeResult = {
  readonly violations: ReadonlyArray<{ readonly id: string; readonly nodes: ReadonlyArray<{ readonly html: string }> }>
  readonly passes: number
}

/** The smallest font size of the visible text, in pixels on the screen, so that the scale of a chart counts. */
const smallestFontSize = `Math.min(...[...document.querySelectorAll('body *')]
  .filter((node) => [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim() !== ''))
  .filter((node) => node.getClientRects().length > 0)
  .map((node) => parseFloat(getComputedStyle(node).fontSize) * (node.ownerSVGElement ? node.getScreenCTM().a : 1)))`
const countElements = (selector: string) => `document.querySelectorAll(${JSON.stringify(selector)}).length`
/** The number of elements that are wider than the page, except inside elements that scroll. */
const overflowCount = `[...document.querySelectorAll('body *')]
  .filter((node) => node.closest('.scroll, svg, .unseen') === null)
  .filter((node) => node.getBoundingClientRect().right > innerWidth + 1).length`
const pageColors =
  '[getComputedStyle(document.body).backgroundColor, ' +
  `getComputedStyle(document.querySelector('.wide svg text, .narrow svg text')).fill]`

/** A report in which every list and table is as long as the page shows it, with long names. */
const fillTables = (report: Report, text?: string): Report => {
  const name = (i: number) => `Harbor Point Family Medical Center ${i}`
  const repeat = <A>(rows: ReadonlyArray<A>, change: (row: A, i: number) => A): ReadonlyArray<A> =>
    Array.from({ length: 40 }, (_, i) => change(rows[i % rows.length] as A, i))
  const groups = (rows: ReadonlyArray<FigureGroup>) =>
    repeat(rows, (row, i) => ({ ...row, key: String(i), name: name(i) }))
  const work = ({ listed }: WorkList) => ({
    total: 4_321,
    listed: repeat(listed, (item, i) => ({
      ...item,
      review_id: String(9007199254741743n + BigInt(i)),
      location_name: name(i),
      owner_name: 'Benjamin Castellanos',
      region: 'Mountain West',
      reasons: ['overdue', 'low_score', 'high_liability'] as const,
      ...(text === undefined ? {} : { text }),
    })),
  })
  const { health } = report
  return {
    ...report,
    alerts: { ...report.alerts, ...work(report.alerts), total: 8_642, backlog: work(report.alerts.backlog) },
    open_tasks: work(report.open_tasks),
    regions: groups(report.regions),
    owners: groups(report.owners),
    locations: groups(report.locations),
    sources: groups(report.sources),
    providers: groups(report.providers),
    categories: groups(report.categories),
    deleted_reviews: groups(
      report.sources.map((row) => ({
        ...row,
        figures: { deleted_reviews: row.figures.reviews, median_days_to_deletion: row.figures.reviews } as Figures,
      })),
    ),
    location_estimates: repeat(report.location_estimates, (row, i) => ({
      ...row,
      location_id: String(i),
      location_name: name(i),
    })),
    open_liabilities: repeat(report.open_liabilities, (row, i) => ({ ...row, category: `Regulatory Violations ${i}` })),
    health: {
      ...health,
      streams: Array.from({ length: 14 }, (_, i) => ({
        ...(health.streams[0] as StreamHealth),
        stream: `review_engagements_${i}`,
      })),
      runs: Array.from({ length: 6 }, (_, i) => ({ ...(health.runs[0] as RunStatistics), run: i })),
      undeclared: health.undeclared.slice(0, 2),
    },
  }
}

/** A text longer than the page shows of one. */
const longText = 'The staff was kind, but the wait took longer than an hour, and nobody told us why. '.repeat(20)

describe.skipIf(!chromiumExists)('the report in a browser', () => {
  let folder = ''
  let browser: Browser
  let tab: Tab
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'report-'))
    const db = join(folder, 'reviews.duckdb')
    const snapshot = await openSnapshotFile(db)
    await fillReviews(snapshot)
    const regions = [1, 2, 3].map((id) => ({
      location_id: String(id),
      location_name: null,
      region: `Region ${id % 2}`,
    }))
    const report = await readReport(snapshot, { now: Date.parse('2026-07-01T00:00:00Z'), regions })
    writeFileSync(join(folder, 'full.html'), renderReport(fillTables(report)))
    writeFileSync(join(folder, 'full-words.html'), renderReport(fillTables(report, longText)))
    await closeSnapshot(snapshot)
    for (const [name, ...more] of [['report'], ['words', '--with-text']] as const) {
      const result = await runCommand(reportCommand, ['--db', db, '--out', join(folder, `${name}.html`), ...more])
      expect(result).toMatchObject({ status: 0, stderr: '' })
    }
    mkdirSync(screenshotFolder, { recursive: true })
    browser = await startChromium()
    tab = await browser.tab()
  })
  afterAll(async () => {
    await browser?.close()
    rmSync(folder, { recursive: true, force: true })
  })

  const openReport = async (width: number, scheme: 'light' | 'dark', name = 'report'): Promise<void> => {
    const size = { width, height: 900, deviceScaleFactor: 1, mobile: width < 600 }
    await tab.send('Emulation.setDeviceMetricsOverride', size)
    await tab.send('Emulation.setEmulatedMedia', {
      media: '',
      features: [{ name: 'prefers-color-scheme', value: scheme }],
    })
    await tab.open(`file://${join(folder, `${name}.html`)}`)
    const { data } = await tab.send('Page.captureScreenshot', { captureBeyondViewport: true })
    writeFileSync(join(screenshotFolder, `${name}-${width}-${scheme}.png`), Buffer.from(String(data), 'base64'))
  }

  it.each([
    ['report', 390, 'light'],
    ['full', 390, 'light'],
    ['report', 360, 'light'],
    ['report', 360, 'dark'],
    ['words', 360, 'light'],
    ['report', 1400, 'light'],
    ['report', 1400, 'dark'],
    ['full', 360, 'light'],
    ['full', 768, 'light'],
    ['full', 1400, 'light'],
  ] as const)('%s is readable at %i pixels in %s', async (name, width, scheme) => {
    await openReport(width, scheme, name)
    expect(await tab.evaluate('document.documentElement.scrollWidth')).toBe(width)
    expect(await tab.evaluate(overflowCount)).toBe(0)
    expect(await tab.evaluate(smallestFontSize)).toBeGreaterThanOrEqual(10.5)
    expect(await tab.evaluate(countElements('svg'))).toBe(12)
    expect(
      await tab.evaluate(
        `[...document.querySelectorAll('svg')].filter((svg) => svg.getClientRects().length > 0).length`,
      ),
    ).toBe(6)
  })

  it.each([
    ['report', 360, 'light'],
    ['report', 1400, 'dark'],
    ['full', 1400, 'light'],
  ] as const)('%s has nothing that axe finds fault with at %i pixels in %s', async (name, width, scheme) => {
    await openReport(width, scheme, name)
    // The page's policy allows no script, but the protocol's own script runs outside of it.
    await tab.evaluate(readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8').replace(/^/, 'void 0;'))
    await tab.evaluate(
      `void axe.run(document, { resultTypes: ['violations'] }).then(({ violations, ` +
        'passes }) => { window.axeResult = { violations, passes: passes.length } })',
    )
    let result: AxeResult | undefined
    while (result === undefined) {
      await new Promise((resolve) => setTimeout(resolve, 100))
      result = (await tab.evaluate('window.axeResult')) as AxeResult | undefined
    }
    expect(result.violations.map(({ id, nodes }) => [id, nodes.slice(0, 2).map(({ html }) => html)])).toEqual([])
    expect(result.passes).toBeGreaterThan(15)
  })

  it('shows the rows of tables as cards on a phone, each figure beside its title', async () => {
    await openReport(390, 'light', 'full')
    const cells = (await tab.evaluate(`[...document.querySelectorAll('tbody tr:not(.words) td')]
      .filter((cell) => cell.getClientRects().length > 0)
      .map((cell) => ({
        width: cell.getBoundingClientRect().width,
        title: getComputedStyle(cell, '::before').content,
        head: cell.closest('table').querySelectorAll('thead th')[cell.cellIndex].textContent,
      }))`)) as ReadonlyArray<{ readonly width: number; readonly title: string; readonly head: string }>
    expect(cells.length).toBeGreaterThan(200)
    expect(cells.filter(({ width }) => width < 280)).toEqual([])
    expect(cells.filter(({ title, head }) => title !== JSON.stringify(head))).toEqual([])
    expect(
      await tab.evaluate(
        `[...document.querySelectorAll('.scroll')].filter((node) => node.scrollWidth > node.clientWidth).length`,
      ),
    ).toBe(0)
  })

  it('shows where the keyboard is: every link, every table and the list of checks can be reached', async () => {
    await openReport(1400, 'light')
    const reached: Array<unknown> = []
    for (let i = 0; i < 80; i += 1) {
      for (const type of ['keyDown', 'keyUp'])
        await tab.send('Input.dispatchKeyEvent', { type, key: 'Tab', code: 'Tab', windowsVirtualKeyCode: 9 })
      const focus = await tab.evaluate(
        'document.activeElement === document.body ? null : [document.activeElement.tagName, ' +
          'getComputedStyle(document.activeElement).outlineStyle]',
      )
      if (focus === null) break
      reached.push(focus)
    }
    const tags = reached.map((focus) => (focus as ReadonlyArray<string>)[0])
    expect(tags.filter((tag) => tag === 'A').length).toBe(await tab.evaluate(countElements('nav a')))
    expect(tags.filter((tag) => tag === 'DIV').length).toBe(await tab.evaluate(countElements('.scroll')))
    expect(tags).toContain('SUMMARY')
    expect(reached.filter((focus) => (focus as ReadonlyArray<string>)[1] !== 'solid')).toEqual([])
  })

  it('is dark if the system is dark', async () => {
    await openReport(1400, 'light')
    const light = await tab.evaluate(pageColors)
    await openReport(1400, 'dark')
    const dark = await tab.evaluate(pageColors)
    expect(light).toEqual(['rgb(255, 255, 255)', 'rgb(29, 33, 38)'])
    expect(dark).toEqual(['rgb(20, 23, 27)', 'rgb(228, 231, 235)'])
  })

  it('prints with light colours even if the system is dark', async () => {
    await openReport(1400, 'dark')
    const features = [{ name: 'prefers-color-scheme', value: 'dark' }]
    await tab.send('Emulation.setEmulatedMedia', { media: 'print', features })
    expect(await tab.evaluate(pageColors)).toEqual(['rgb(255, 255, 255)', 'rgb(29, 33, 38)'])
  })

  /** No heading or head of a table ends a page, and none but the last ends in its upper two thirds. */
  const expectFullPages = async (pages: ReturnType<typeof readPdfPages>): Promise<void> => {
    const headings = (await tab.evaluate(
      `[...document.querySelectorAll('h2, h3, caption, thead')].map((node) => node.textContent)`,
    )) as ReadonlyArray<string>
    const isHeading = (text: string) => headings.includes(text.replaceAll('ﬁ', 'fi').replaceAll('ﬂ', 'fl'))
    for (const lines of pages.slice(0, -1)) {
      expect(lines.slice(-2).filter(({ text }) => isHeading(text))).toEqual([])
      expect(lines.at(-1)?.at).toBeGreaterThan(0.66)
    }
    expect(pages.at(-1)?.at(-1)?.at).toBeGreaterThan(0.33)
  }

  it('has only units of print in the rules for paper', () =>
    expect(pageStyle.split('@media print {\n  @page')[1]).not.toMatch(/[\d.](px|rem|em)\b/))

  it.each<[string, ReadonlyArray<number>]>([
    ['report', [2, 3]],
    ['full', [2, 3]],
    ['words', [2, 3]],
    // Every list is at its longest, and so is every text.
    ['full-words', [3, 4]],
  ])('%s is printed on %j sheets of A4, with nothing cut off', async (name, sheets) => {
    await openReport(1400, 'light', name)
    const { data } = await tab.send('Page.printToPDF', { printBackground: true, preferCSSPageSize: true })
    const pdf = Buffer.from(String(data), 'base64')
    writeFileSync(join(screenshotFolder, `${name}.pdf`), pdf)
    expect(pdf.subarray(0, 5).toString()).toBe('%PDF-')
    const pages = readPdfPages(pdf)
    expect(sheets).toContain(pages.length)
    await expectFullPages(pages)
    // The page as it is laid out for the paper: as wide as A4 without its margins of 12 mm.
    const width = Math.floor(((210 - 24) / 25.4) * 96)
    await tab.send('Emulation.setDeviceMetricsOverride', { width, height: 1000, deviceScaleFactor: 1, mobile: false })
    await tab.send('Emulation.setEmulatedMedia', { media: 'print' })
    expect(
      await tab.evaluate(`[...document.querySelectorAll('body *')]
      .filter((node) => node.closest('svg, .unseen') === null && node.getBoundingClientRect().right > ${width} + 1)
      .map((node) => node.outerHTML.slice(0, 80))`),
    ).toEqual([])
    expect(
      await tab.evaluate(`[...document.querySelectorAll('.scroll, td, th, figure, section')]
      .filter((node) => node.getClientRects().length > 0 && node.scrollWidth > node.clientWidth + 1)
      .filter((node) => getComputedStyle(node).overflowX !== 'visible')
      .length`),
    ).toBe(0)
    // A text ends with its last line, or with the sign that the page shows only its beginning.
    expect(
      await tab.evaluate(
        `[...document.querySelectorAll('.words td')].filter((node) ` +
          '=> node.scrollHeight > node.clientHeight + 1).length',
      ),
    ).toBe(0)
    expect(await tab.evaluate(countElements('.words'))).toBe(name.includes('words') ? 15 : 0)
  })

  it('runs no script, fetches nothing and logs no error', async () => {
    const plain = await browser.tab()
    await plain.open(`file://${join(folder, 'report.html')}`)
    expect(await plain.evaluate(countElements('script, img, iframe, object, embed'))).toBe(0)
    const requests = plain.events.filter(({ method }) => method === 'Network.requestWillBeSent')
    const addresses = requests.map(({ params }) => (params.request as { readonly url: string }).url)
    expect(addresses.length).toBeGreaterThan(0)
    expect(addresses.filter((url) => !url.startsWith(`file://${folder}/report.html`) && url !== 'data:,')).toEqual([])
    const errorEvents = ['Runtime.consoleAPICalled', 'Runtime.exceptionThrown', 'Log.entryAdded']
    expect(plain.events.filter(({ method }) => errorEvents.includes(method))).toEqual([])
  })
})
