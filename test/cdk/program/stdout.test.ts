import { spawn } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createStdoutWriter } from '../../../connector/cdk/program/stdout'

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

  it('does not mix texts that are written at the same time, also if one is longer than may wait', async () => {
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
