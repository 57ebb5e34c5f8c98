import { describe, expect, it } from 'vitest'
import { roomIn } from '../../connector/api/cut/room'
import { pool } from '../../connector/api/pool'

const mega = 1 << 20

describe('pool', () => {
  it('hands out a buffer again once it was given back, if it is large enough', () => {
    const { take, give } = pool()
    const first = take(mega)
    expect(first.length).toBeGreaterThanOrEqual(mega)
    expect(take(mega) === first).toBe(false)
    give(first)
    expect(take(2 * mega) === first).toBe(false)
    expect(take(mega) === first).toBe(true)
    expect(take(mega) === first).toBe(false)
  })

  it('keeps neither small ones nor ever more of them', () => {
    const { take, give } = pool()
    const small = take(10)
    give(small)
    expect(take(10) === small).toBe(false)
    const many = Array.from({ length: 40 }, () => take(mega))
    for (const one of many) give(one)
    const again = new Set(Array.from({ length: 40 }, () => take(mega)))
    expect(many.filter((one) => again.has(one)).length).toBe(16)
  })
})

describe('room', () => {
  it('is given back whole, however much was taken', () => {
    const buffers = pool()
    const room = roomIn(buffers, mega)
    const taken = [mega - 10, 5, mega, 3 * mega].map((length) => {
      const from = room.reserve(length)
      return room.bytes().subarray(from, from + length)
    })
    for (const [i, piece] of taken.entries()) piece.fill(i + 1)
    expect(taken.every((piece, i) => piece.every((byte) => byte === i + 1))).toBe(true)
    room.release()
    expect(taken.map(({ buffer }) => buffer)).toContain(buffers.take(3 * mega).buffer)
  })
})
