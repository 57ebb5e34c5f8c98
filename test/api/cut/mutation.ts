import * as fc from 'fast-check'

export type Mutation = {
  readonly at: number
  readonly byte: number
  readonly how: 'flip' | 'delete' | 'insert' | 'truncate'
}

const telling = [...Buffer.from('{}[]",:\\/ \t\n\r0-+.eEu1ntf'), 0, 0x1f, 0x7f, 0x80, 0xc3, 0xed, 0xa0, 0xff]
/** What may happen to a byte of a page. */
export const mutation: fc.Arbitrary<Mutation> = fc.record({
  at: fc.nat(),
  byte: fc.constantFrom(...telling),
  how: fc.oneof(
    { weight: 5, arbitrary: fc.constantFrom('flip' as const, 'delete' as const, 'insert' as const) },
    { weight: 1, arbitrary: fc.constant('truncate' as const) },
  ),
})

export const mutate = (bytes: Uint8Array, { at, byte, how }: Mutation): Uint8Array => {
  const place = at % (bytes.length + 1)
  const head = bytes.subarray(0, place)
  switch (how) {
    case 'truncate':
      return head
    case 'delete':
      return Buffer.concat([head, bytes.subarray(place + 1)])
    case 'insert':
      return Buffer.concat([head, Buffer.of(byte), bytes.subarray(place)])
    case 'flip':
      return Buffer.concat([head, Buffer.of(byte), bytes.subarray(place + 1)])
  }
}
