import { PassThrough, Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { createBufferPool, receiveBody } from '../../../connector/api/http/buffers'

const mega = 1 << 20

describe('a buffer pool', () => {
  it('gives a released buffer again to the next request that it is large enough for', () => {
    const { acquire, release } = createBufferPool()
    const first = acquire(mega)
    expect(first.length).toBeGreaterThanOrEqual(mega)
    expect(acquire(mega) === first).toBe(false)
    release(first)
    expect(acquire(2 * mega) === first).toBe(false)
    expect(acquire(mega) === first).toBe(true)
    expect(acquire(mega) === first).toBe(false)
  })

  it('keeps no small buffer, and sixteen buffers at most', () => {
    const { acquire, release } = createBufferPool()
    const small = acquire(10)
    release(small)
    expect(acquire(10) === small).toBe(false)
    const first = Array.from({ length: 40 }, () => acquire(mega))
    for (const buffer of first) release(buffer)
    const second = new Set(Array.from({ length: 40 }, () => acquire(mega)))
    expect(first.filter((buffer) => second.has(buffer)).length).toBe(16)
  })
})

const byteOrderMark = [0xef, 0xbb, 0xbf]
const receiveChunks = async (...chunks: number[][]) =>
  (await receiveBody(Readable.from(chunks.map((chunk) => Buffer.from(chunk))), 0, 100, createBufferPool()))?.bytes

describe('a received body', () => {
  it('leaves out a byte order mark at its start, in one chunk or several', async () => {
    expect(await receiveChunks([...byteOrderMark, 123, 125])).toEqual(Buffer.from('{}'))
    expect(await receiveChunks(byteOrderMark.slice(0, 1), byteOrderMark.slice(1), [123, 125])).toEqual(
      Buffer.from('{}'),
    )
    expect(await receiveChunks(byteOrderMark)).toHaveLength(0)
    expect(await receiveChunks([123, ...byteOrderMark])).toEqual(Buffer.from([123, ...byteOrderMark]))
  })

  it('takes no more memory than was announced', async () => {
    const body = await receiveBody(Readable.from([Buffer.alloc(2400)]), 2400, mega, createBufferPool())
    expect(body?.bytes.buffer.byteLength).toBe(2400)
  })

  it('is refused beyond the limit, in one chunk or several', async () => {
    expect(await receiveBody(Readable.from([Buffer.alloc(101)]), 0, 100, createBufferPool())).toBeUndefined()
    expect(
      await receiveBody(Readable.from([Buffer.alloc(60), Buffer.alloc(41)]), 0, 100, createBufferPool()),
    ).toBeUndefined()
  })

  const chunks = [Buffer.alloc(mega, 1), Buffer.alloc(mega, 2), Buffer.alloc(7, 3)]
  const whole = Buffer.concat(chunks)

  it('is whole whatever length was announced, and its released buffer is used again', async () => {
    const buffers = createBufferPool()
    for (const announced of [0, whole.length, 5 * mega, 3]) {
      const body = await receiveBody(Readable.from(chunks), announced, 10 * mega, buffers)
      expect(body?.bytes.equals(whole)).toBe(true)
      body?.release()
      expect(buffers.acquire(2 * mega).buffer).toBe(body?.bytes.buffer)
    }
  })

  it('fails when its stream breaks', async () => {
    const broken = new PassThrough()
    broken.write(Buffer.alloc(7))
    setImmediate(() => broken.destroy(new Error('reset')))
    await expect(receiveBody(broken, 0, 100, createBufferPool())).rejects.toThrow('reset')
    const ended = new PassThrough()
    setImmediate(() => ended.destroy())
    await expect(receiveBody(ended, 0, 100, createBufferPool())).rejects.toMatchObject({
      code: 'ERR_STREAM_PREMATURE_CLOSE',
    })
  })

  it('stops its stream at the limit, and may be as long as the limit', async () => {
    const long = Readable.from(chunks)
    expect(await receiveBody(long, 0, 2 * mega, createBufferPool())).toBeUndefined()
    expect(long.destroyed).toBe(true)
    expect(await receiveBody(Readable.from(chunks), 0, whole.length, createBufferPool())).toBeDefined()
  })
})
