import { describe, expect, it } from 'vitest'
import { createBufferPool } from '../../../connector/api/http/buffers'
import { createOutputBuffer } from '../../../connector/export/cut/edit'

const mega = 1 << 20

describe('pool', () => {
  it('hands out a buffer again once it was given back, if it is large enough', () => {
    const { acquire, release } = createBufferPool()
    const first = acquire(mega)
    expect(first.length).toBeGreaterThanOrEqual(mega)
    expect(acquire(mega) === first).toBe(false)
    release(first)
    expect(acquire(2 * mega) === first).toBe(false)
    expect(acquire(mega) === first).toBe(true)
    expect(acquire(mega) === first).toBe(false)
  })

  it('keeps neither small ones nor ever more of them', () => {
    const { acquire, release } = createBufferPool()
    const small = acquire(10)
    release(small)
    expect(acquire(10) === small).toBe(false)
    const many = Array.from({ length: 40 }, () => acquire(mega))
    for (const one of many) release(one)
    const again = new Set(Array.from({ length: 40 }, () => acquire(mega)))
    expect(many.filter((one) => again.has(one)).length).toBe(16)
  })
})

describe('room', () => {
  it('is given back whole, however much was taken', () => {
    const buffers = createBufferPool()
    const room = createOutputBuffer(buffers, mega)
    const taken = [mega - 10, 5, mega, 3 * mega].map((length) => {
      const from = room.reserve(length)
      return room.bytes().subarray(from, from + length)
    })
    for (const [i, piece] of taken.entries()) piece.fill(i + 1)
    expect(taken.every((piece, i) => piece.every((byte) => byte === i + 1))).toBe(true)
    room.release()
    expect(taken.map(({ buffer }) => buffer)).toContain(buffers.acquire(3 * mega).buffer)
  })
})
