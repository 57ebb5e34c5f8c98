import { describe, expect, it } from 'vitest'
import { createBufferPool } from '../../../connector/api/http/buffers'
import { createOutputBuffer } from '../../../connector/export/cut/edit'

const mega = 1 << 20

describe('an output buffer', () => {
  it('keeps every reserved piece apart and gives its largest buffer back on release', () => {
    const buffers = createBufferPool()
    const output = createOutputBuffer(buffers, mega)
    const pieces = [mega - 10, 5, mega, 3 * mega].map((length) => {
      const start = output.reserve(length)
      return output.bytes().subarray(start, start + length)
    })
    for (const [i, piece] of pieces.entries()) piece.fill(i + 1)
    expect(pieces.every((piece, i) => piece.every((byte) => byte === i + 1))).toBe(true)
    output.release()
    expect(pieces.map(({ buffer }) => buffer)).toContain(buffers.acquire(3 * mega).buffer)
  })
})
