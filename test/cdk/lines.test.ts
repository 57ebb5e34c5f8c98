import { spawn } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createProgressPrinter, createStdoutWriter } from '../../connector/cdk/lines'

describe('the writer of stdout', () => {
  it('writes strings and bytes in order', async () => {
    const path = join(mkdtempSync(join(tmpdir(), 'writer-')), 'out')
    const fd = openSync(path, 'w')
    const { write, flush } = createStdoutWriter(fd, 100)
    const chunks = Array.from({ length: 2_000 }, (_, i) => `${i}é\n`)
    for (const [i, chunk] of chunks.entries()) await write(i % 2 === 0 ? chunk : [Buffer.from(chunk)])
    await flush()
    closeSync(fd)
    expect(readFileSync(path, 'utf8')).toBe(chunks.join(''))
  })

  it('does not mix texts that are written at the same time, also if one is longer than the limit of waiting bytes', async () => {
    const path = join(mkdtempSync(join(tmpdir(), 'writer-')), 'out')
    const fd = openSync(path, 'w')
    const { write, flush } = createStdoutWriter(fd, 1000)
    const reused = Buffer.alloc(100_003)
    function* pieces() {
      for (let i = 0; i < 40; i++) yield reused.fill(i)
    }
    const written = [write('before'), write(pieces()), write('after')]
    await Promise.all([...written, flush()])
    closeSync(fd)
    const expected = Array.from({ length: 40 }, (_, i) => Buffer.alloc(100_003, i))
    expect(readFileSync(path).equals(Buffer.concat([Buffer.from('before'), ...expected, Buffer.from('after')]))).toBe(
      true,
    )
  })

  it('makes the caller wait while the reader reads nothing, and goes on when it reads', async () => {
    const sink = spawn('sleep', ['60'], { stdio: ['pipe', 'ignore', 'ignore'] })
    const { fd } = (sink.stdin as unknown as { _handle: { fd: number } })._handle
    const { write } = createStdoutWriter(fd, 1000)
    const big = Buffer.alloc(4_000_000)
    const outcome = await Promise.race([
      write([big]).then(
        () => 'taken',
        () => 'broken',
      ),
      new Promise((resolve) => setTimeout(() => resolve('held back'), 200)),
    ])
    expect(outcome).toBe('held back')
    sink.kill('SIGKILL')
  })

  it('rejects every write once the descriptor is broken', async () => {
    const fd = openSync(join(mkdtempSync(join(tmpdir(), 'writer-')), 'out'), 'w')
    closeSync(fd)
    const { write, flush } = createStdoutWriter(fd)
    await write('x').catch(() => undefined)
    await expect(flush()).rejects.toThrow('EBADF')
    await expect(write('y')).rejects.toThrow('EBADF')
  })
})

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
