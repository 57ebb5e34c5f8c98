import * as fc from 'fast-check'

export type ByteMutation = {
  readonly at: number
  readonly byte: number
  readonly kind: 'flip' | 'delete' | 'insert' | 'truncate'
}

const significantBytes = [...Buffer.from('{}[]",:\\/ \t\n\r0-+.eEu1ntf'), 0, 0x1f, 0x7f, 0x80, 0xc3, 0xed, 0xa0, 0xff]
/** A change of one byte of a page. */
export const byteMutation: fc.Arbitrary<ByteMutation> = fc.record({
  at: fc.nat(),
  byte: fc.constantFrom(...significantBytes),
  kind: fc.oneof(
    { weight: 5, arbitrary: fc.constantFrom('flip' as const, 'delete' as const, 'insert' as const) },
    { weight: 1, arbitrary: fc.constant('truncate' as const) },
  ),
})

export const mutateBytes = (bytes: Uint8Array, { at, byte, kind }: ByteMutation): Uint8Array => {
  const place = at % (bytes.length + 1)
  const head = bytes.subarray(0, place)
  switch (kind) {
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
