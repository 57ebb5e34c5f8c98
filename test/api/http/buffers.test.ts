import { describe, expect, it } from 'vitest'
import { createBufferPool } from '../../../connector/api/http/buffers'

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
