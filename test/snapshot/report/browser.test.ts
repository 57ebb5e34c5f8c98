import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { reportCommand } from '../../../connector/cli/query'
import { closeSnapshot } from '../../../connector/snapshot/store/open'
import { type Browser, hasChromium, startChromium, type Tab } from '../../support/chromium'
import { fillReviews } from '../../support/report-reviews'
import { runCommand } from '../../support/run-command'
import { openSnapshotFile } from '../../support/snapshot-messages'

const screenshotFolder = join(__dirname, '..', '..', '..', 'build', 'screenshots')
const chromiumExists = hasChromium()
if (!chromiumExists)
  console.warn(
    'The report is not tested in a browser: chromium is not installed. Install it with apt-get install chromium.',
  )

/** The smallest font size of the visible text, in pixels on the screen, so that the scale of a chart counts. */
const smallestFontSize = `Math.min(...[...document.querySelectorAll('body *')]
  .filter((node) => [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim() !== '') && node.getClientRects().length > 0)
  .map((node) => parseFloat(getComputedStyle(node).fontSize) * (node.ownerSVGElement ? node.getScreenCTM().a : 1)))`
const countElements = (selector: string) => `document.querySelectorAll(${JSON.stringify(selector)}).length`
/** The number of elements that are wider than the page, except inside elements that scroll. */
const overflowCount = `[...document.querySelectorAll('body *')]
  .filter((node) => node.closest('.scroll') === null && node.closest('svg') === null && node.getBoundingClientRect().right > innerWidth + 1).length`
const pageColors = `[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.querySelector('.wide svg text, .narrow svg text')).fill]`

describe.skipIf(!chromiumExists)('the report in a browser', () => {
  let folder = ''
  let browser: Browser
  let tab: Tab
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'report-'))
    const db = join(folder, 'reviews.duckdb')
    const snapshot = await openSnapshotFile(db)
    await fillReviews(snapshot)
    await closeSnapshot(snapshot)
    const result = await runCommand(reportCommand, ['--db', db, '--out', join(folder, 'report.html')])
    expect(result).toMatchObject({ status: 0, stderr: '' })
    mkdirSync(screenshotFolder, { recursive: true })
    browser = await startChromium()
    tab = await browser.tab()
  }, 60_000)
  afterAll(async () => {
    await browser?.close()
    rmSync(folder, { recursive: true, force: true })
  })

  const openReport = async (width: number, scheme: 'light' | 'dark'): Promise<void> => {
    const size = { width, height: 900, deviceScaleFactor: 1, mobile: width < 600 }
    await tab.send('Emulation.setDeviceMetricsOverride', size)
    await tab.send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: scheme }] })
    await tab.open(`file://${join(folder, 'report.html')}`)
    const { data } = await tab.send('Page.captureScreenshot', { captureBeyondViewport: true })
    writeFileSync(join(screenshotFolder, `report-${width}-${scheme}.png`), Buffer.from(String(data), 'base64'))
  }

  it.each([
    [380, 'light'],
    [380, 'dark'],
    [1400, 'light'],
    [1400, 'dark'],
  ] as const)('is readable at %i pixels in %s', async (width, scheme) => {
    await openReport(width, scheme)
    expect(await tab.evaluate('document.documentElement.scrollWidth')).toBe(width)
    expect(await tab.evaluate(overflowCount)).toBe(0)
    expect(await tab.evaluate(smallestFontSize)).toBeGreaterThanOrEqual(10.5)
    expect(await tab.evaluate(countElements('svg'))).toBe(14)
    expect(
      await tab.evaluate(
        `[...document.querySelectorAll('svg')].filter((svg) => svg.getClientRects().length > 0).length`,
      ),
    ).toBe(7)
  })

  it('is dark if the system is dark', async () => {
    await openReport(1400, 'light')
    const light = await tab.evaluate(pageColors)
    await openReport(1400, 'dark')
    const dark = await tab.evaluate(pageColors)
    expect(light).toEqual(['rgb(255, 255, 255)', 'rgb(95, 102, 112)'])
    expect(dark).toEqual(['rgb(20, 23, 27)', 'rgb(154, 162, 173)'])
  })

  it('prints with light colours even if the system is dark', async () => {
    const features = [{ name: 'prefers-color-scheme', value: 'dark' }]
    await tab.send('Emulation.setEmulatedMedia', { media: 'print', features })
    expect(await tab.evaluate(pageColors)).toEqual(['rgb(255, 255, 255)', 'rgb(95, 102, 112)'])
    const { data } = await tab.send('Page.printToPDF', { printBackground: true, paperWidth: 8.27, paperHeight: 11.69 })
    const pdf = Buffer.from(String(data), 'base64')
    writeFileSync(join(screenshotFolder, 'report.pdf'), pdf)
    expect(pdf.subarray(0, 5).toString()).toBe('%PDF-')
  })

  it('runs no script, fetches nothing and logs no error', async () => {
    expect(await tab.evaluate(countElements('script, img, iframe, object, embed'))).toBe(0)
    const requests = tab.events.filter(({ method }) => method === 'Network.requestWillBeSent')
    const addresses = requests.map(({ params }) => (params.request as { readonly url: string }).url)
    expect(addresses.length).toBeGreaterThan(0)
    expect(addresses.filter((url) => !url.startsWith(`file://${folder}/report.html`) && url !== 'data:,')).toEqual([])
    const errorEvents = ['Runtime.consoleAPICalled', 'Runtime.exceptionThrown', 'Log.entryAdded']
    expect(tab.events.filter(({ method }) => errorEvents.includes(method))).toEqual([])
  })
})
