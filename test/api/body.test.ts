import { PassThrough, Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { bodyOf } from '../../connector/api/body'
import { pool } from '../../connector/api/pool'

const mega = 1 << 20
const mark = [0xef, 0xbb, 0xbf]
const of = async (...pieces: number[][]) =>
  (await bodyOf(Readable.from(pieces.map((piece) => Buffer.from(piece))), 0, 100, pool()))?.bytes

describe('bodyOf', () => {
  it('passes over a byte order mark, in one piece or many', async () => {
    expect(await of([...mark, 123, 125])).toEqual(Buffer.from('{}'))
    expect(await of(mark.slice(0, 1), mark.slice(1), [123, 125])).toEqual(Buffer.from('{}'))
    expect(await of(mark)).toHaveLength(0)
    expect(await of([123, ...mark])).toEqual(Buffer.from([123, ...mark]))
  })

  it('takes no more room than was announced', async () => {
    const body = await bodyOf(Readable.from([Buffer.alloc(2400)]), 2400, mega, pool())
    expect(body?.bytes.buffer.byteLength).toBe(2400)
  })

  it('holds no more than it may', async () => {
    expect(await bodyOf(Readable.from([Buffer.alloc(101)]), 0, 100, pool())).toBeUndefined()
    expect(await bodyOf(Readable.from([Buffer.alloc(60), Buffer.alloc(41)]), 0, 100, pool())).toBeUndefined()
  })

  const pieces = [Buffer.alloc(mega, 1), Buffer.alloc(mega, 2), Buffer.alloc(7, 3)]
  const whole = Buffer.concat(pieces)

  it('comes whole, whatever length was announced, and its buffer serves the next once released', async () => {
    const buffers = pool()
    for (const announced of [0, whole.length, 5 * mega, 3]) {
      const body = await bodyOf(Readable.from(pieces), announced, 10 * mega, buffers)
      expect(body?.bytes.equals(whole)).toBe(true)
      body?.release()
      expect(buffers.take(2 * mega).buffer).toBe(body?.bytes.buffer)
    }
  })

  it('breaks with its stream', async () => {
    const broken = new PassThrough()
    broken.write(Buffer.alloc(7))
    setImmediate(() => broken.destroy(new Error('reset')))
    await expect(bodyOf(broken, 0, 100, pool())).rejects.toThrow('reset')
    const ended = new PassThrough()
    setImmediate(() => ended.destroy())
    await expect(bodyOf(ended, 0, 100, pool())).rejects.toMatchObject({ code: 'ERR_STREAM_PREMATURE_CLOSE' })
  })

  it('is none beyond the limit, and its stream is not read on', async () => {
    const long = Readable.from(pieces)
    expect(await bodyOf(long, 0, 2 * mega, pool())).toBeUndefined()
    expect(long.destroyed).toBe(true)
    expect(await bodyOf(Readable.from(pieces), 0, whole.length, pool())).toBeDefined()
  })
})
