import { describe, expect, it } from 'vitest'
import { createProgressPrinter } from '../../../connector/cdk/program/progress'

describe('createProgressPrinter', () => {
  const print = (columns: number | undefined, calls: ReadonlyArray<readonly [at: number, line: string]>) => {
    let at = 0
    const written: string[] = []
    const progress = createProgressPrinter({
      columns: () => columns,
      write: (text) => void written.push(text),
      now: () => at,
    })
    for (const [time, line] of calls) {
      at = time
      progress.print(line)
    }
    return written
  }

  it('redraws at most five times in any second on a terminal, however often it is called', () => {
    const written = print(
      80,
      Array.from({ length: 1_700 }, (_, i) => [i * 6, `${i} rows`] as const),
    )
    expect(written.length).toBeGreaterThan(40)
    expect(written.length).toBeLessThanOrEqual(10_200 / 200 + 1)
  })

  it('clears the line, only where one is drawn', () => {
    expect(
      print(80, [
        [0, 'a'],
        [1, ''],
        [2, ''],
      ]),
    ).toEqual(['\r\x1b[Ka', '\r\x1b[K'])
    expect(print(80, [[0, '']])).toEqual([])
  })

  it('holds a line back on a terminal until the run has taken its time, and draws the newest one then', () => {
    let at = 0
    const written: string[] = []
    const progress = createProgressPrinter({
      columns: () => 80,
      write: (text) => void written.push(text),
      now: () => at,
    })
    for (const [i, time] of [0, 1_000, 1_900].entries()) {
      at = time
      progress.print(`check ${i + 1}`, 2_000)
      progress.repeat()
    }
    expect(written).toEqual([])
    for (at = 2_000; at < 9_000; at += 500) progress.repeat()
    expect(written).toEqual(['\r\x1b[Kcheck 3'])
  })

  it('draws the last of several lines that come at once, and none after they were cleared', () => {
    let at = 0
    const written: string[] = []
    const progress = createProgressPrinter({
      columns: () => 80,
      write: (text) => void written.push(text),
      now: () => at,
    })
    for (const line of ['a', 'b', 'c']) progress.print(line)
    for (at = 0; at < 2_000; at += 100) progress.repeat()
    expect(written).toEqual(['\r\x1b[Ka', '\r\x1b[Kc'])
    for (const line of ['d', 'e', '']) progress.print(line)
    for (; at < 4_000; at += 100) progress.repeat()
    expect(written.slice(2)).toEqual(['\r\x1b[Kd', '\r\x1b[K'])
  })

  it('never lets a line wrap', () => {
    const [text = ''] = print(20, [[0, 'x'.repeat(100)]])
    expect(text.replace('\r\x1b[K', '')).toBe(`${'x'.repeat(18)}…`)
  })

  it('elsewhere prints a line with its time a minute, the first after a minute, and clears nothing', () => {
    const calls = Array.from({ length: 300 }, (_, second) => [second * 1000, `${second} rows`] as const)
    expect(print(undefined, [...calls, [300_000, '']])).toEqual(
      [60, 120, 180, 240].map((second) => `1970-01-01T00:0${second / 60}:00.000Z ${second} rows\n`),
    )
  })

  it('repeats the last line elsewhere, once a minute, until it is cleared', () => {
    let at = 0
    const written: string[] = []
    const { print, repeat } = createProgressPrinter({
      columns: () => undefined,
      write: (text) => void written.push(text),
      now: () => at,
    })
    print('waiting')
    for (at = 0; at < 150_000; at += 5_000) repeat()
    print('')
    for (; at < 300_000; at += 5_000) repeat()
    expect(written).toEqual(['1970-01-01T00:01:00.000Z waiting\n', '1970-01-01T00:02:00.000Z waiting\n'])
  })
})
