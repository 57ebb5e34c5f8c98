import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createVersionHash } from '../../connector/streams/version-hash'
import { draws } from '../support/draws'

/** 60 bits of the MD5, as the SQL of an audit computes them. */
const hashOf = (text: string): bigint => BigInt(`0x${createHash('md5').update(text).digest('hex').slice(0, 15)}`)

describe('the hash of a version', () => {
  it('is the start of the MD5 of id and milliseconds', () => {
    const hash = createVersionHash()
    fc.assert(
      fc.property(
        fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
        fc.oneof(fc.integer({ min: -8.64e15, max: 8.64e15 }), fc.integer({ min: 1e12, max: 2e12 })),
        (number, version) => {
          const { high, low } = hash(String(number), version)
          expect((BigInt(high) << 28n) + BigInt(low)).toBe(hashOf(`${number}:${version}`))
        },
      ),
      draws(100),
    )
  })
})
