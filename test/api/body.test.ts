import { Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { bodyOf } from '../../connector/api/body'

const mark = [0xef, 0xbb, 0xbf]
const of = (...pieces: number[][]) => bodyOf(Readable.from(pieces.map((piece) => Buffer.from(piece))), 0, 100)

describe('bodyOf', () => {
  it('passes over a byte order mark, in one piece or many', async () => {
    expect(await of([...mark, 123, 125])).toEqual(Buffer.from('{}'))
    expect(await of(mark.slice(0, 1), mark.slice(1), [123, 125])).toEqual(Buffer.from('{}'))
    expect(await of(mark)).toHaveLength(0)
    expect(await of([123, ...mark])).toEqual(Buffer.from([123, ...mark]))
  })

  it('holds no more than it may', async () => {
    expect(await bodyOf(Readable.from([Buffer.alloc(101)]), 0, 100)).toBeUndefined()
    expect(await bodyOf(Readable.from([Buffer.alloc(60), Buffer.alloc(41)]), 0, 100)).toBeUndefined()
  })
})
