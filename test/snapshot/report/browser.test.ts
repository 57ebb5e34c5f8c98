import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { reportCommand } from '../../../connector/cli/report'
import { closeSnapshot, openSnapshot } from '../../../connector/snapshot/store/open'
import { type Browser, hasChromium, startChromium, type Tab } from '../../support/chromium'
import { fillReviews } from '../../support/report-reviews'
import { runCommand } from '../../support/run-command'

const pictures = join(__dirname, '..', '..', '..', 'build', 'screenshots')
const here = hasChromium()
if (!here) console.warn('test/browser skips: there is no chromium here; apt-get install chromium brings it.')

/** In pixels on the screen, so that a chart that was shrunk counts as such; `none` of what is not shown. */
const smallestText = `Math.min(...[...document.querySelectorAll('body *')]
  .filter((node) => [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim() !== '') && node.getClientRects().length > 0)
  .map((node) => parseFloat(getComputedStyle(node).fontSize) * (node.ownerSVGElement ? node.getScreenCTM().a : 1)))`
const count = (selector: string) => `document.querySelectorAll(${JSON.stringify(selector)}).length`
/** Elements that reach out of the page, except inside of what scrolls by itself. */
const outside = `[...document.querySelectorAll('body *')]
  .filter((node) => node.closest('.scroll') === null && node.closest('svg') === null && node.getBoundingClientRect().right > innerWidth + 1).length`
const shades = `[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.querySelector('.wide svg text, .narrow svg text')).fill]`

describe.skipIf(!here)('the report in a browser', () => {
  let folder = ''
  let browser: Browser
  let tab: Tab
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'report-'))
    const db = join(folder, 'made-up.duckdb')
    const opened = await openSnapshot(db)()
    if (opened._tag === 'Left') throw new Error(opened.left.message)
    await fillReviews(opened.right)
    await closeSnapshot(opened.right)
    const made = await runCommand(reportCommand, ['--db', db, '--out', join(folder, 'report.html')])
    expect(made).toMatchObject({ status: 0, stderr: '' })
    mkdirSync(pictures, { recursive: true })
    browser = await startChromium()
    tab = await browser.tab()
  }, 60_000)
  afterAll(async () => {
    await browser?.close()
    rmSync(folder, { recursive: true, force: true })
  })

  const show = async (width: number, scheme: 'light' | 'dark'): Promise<void> => {
    const size = { width, height: 900, deviceScaleFactor: 1, mobile: width < 600 }
    await tab.send('Emulation.setDeviceMetricsOverride', size)
    await tab.send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: scheme }] })
    await tab.open(`file://${join(folder, 'report.html')}`)
    const { data } = await tab.send('Page.captureScreenshot', { captureBeyondViewport: true })
    writeFileSync(join(pictures, `report-${width}-${scheme}.png`), Buffer.from(String(data), 'base64'))
  }

  it.each([
    [380, 'light'],
    [380, 'dark'],
    [1400, 'light'],
    [1400, 'dark'],
  ] as const)('is readable at %i pixels in %s', async (width, scheme) => {
    await show(width, scheme)
    expect(await tab.evaluate('document.documentElement.scrollWidth')).toBe(width)
    expect(await tab.evaluate(outside)).toBe(0)
    expect(await tab.evaluate(smallestText)).toBeGreaterThanOrEqual(10.5)
    expect(await tab.evaluate(count('svg'))).toBe(14)
    expect(
      await tab.evaluate(
        `[...document.querySelectorAll('svg')].filter((svg) => svg.getClientRects().length > 0).length`,
      ),
    ).toBe(7)
  })

  it('turns dark with the system', async () => {
    await show(1400, 'light')
    const light = await tab.evaluate(shades)
    await show(1400, 'dark')
    const dark = await tab.evaluate(shades)
    expect(light).toEqual(['rgb(255, 255, 255)', 'rgb(95, 102, 112)'])
    expect(dark).toEqual(['rgb(20, 23, 27)', 'rgb(154, 162, 173)'])
  })

  it('prints on light paper, even from a dark screen', async () => {
    const features = [{ name: 'prefers-color-scheme', value: 'dark' }]
    await tab.send('Emulation.setEmulatedMedia', { media: 'print', features })
    expect(await tab.evaluate(shades)).toEqual(['rgb(255, 255, 255)', 'rgb(95, 102, 112)'])
    const { data } = await tab.send('Page.printToPDF', { printBackground: true, paperWidth: 8.27, paperHeight: 11.69 })
    const pdf = Buffer.from(String(data), 'base64')
    writeFileSync(join(pictures, 'report.pdf'), pdf)
    expect(pdf.subarray(0, 5).toString()).toBe('%PDF-')
  })

  it('has run nothing, fetched nothing and complained of nothing', async () => {
    expect(await tab.evaluate(count('script, img, iframe, object, embed'))).toBe(0)
    const asked = tab.events.filter(({ method }) => method === 'Network.requestWillBeSent')
    const addresses = asked.map(({ params }) => (params.request as { readonly url: string }).url)
    expect(addresses.length).toBeGreaterThan(0)
    expect(addresses.filter((url) => !url.startsWith(`file://${folder}/report.html`) && url !== 'data:,')).toEqual([])
    const complaints = ['Runtime.consoleAPICalled', 'Runtime.exceptionThrown', 'Log.entryAdded']
    expect(tab.events.filter(({ method }) => complaints.includes(method))).toEqual([])
  })
})
