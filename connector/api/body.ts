import type { Readable } from 'node:stream'

const smallest = 1 << 16

/** A byte order mark, which a JSON text should not begin with and its reader may pass over (RFC 8259, 8.1). */
const mark = Buffer.from([0xef, 0xbb, 0xbf])

/**
 * The bytes of an answer in one buffer, without a byte order mark and the pieces they came in; none once there are more than `limit`.
 * `announced`: its Content-Length, which is not that of an answer that came compressed. Rejects where the stream breaks.
 */
export const bodyOf = async (stream: Readable, announced: number, limit: number): Promise<Buffer | undefined> => {
  let bytes: Buffer = Buffer.allocUnsafeSlow(Math.min(Math.max(announced, smallest), limit))
  let end = 0
  for await (const piece of stream as AsyncIterable<Buffer>) {
    const needed = end + piece.length
    if (needed > limit) return undefined
    if (needed > bytes.length) bytes = enlarged(bytes, end, Math.min(Math.max(needed, bytes.length * 2), limit))
    end += piece.copy(bytes, end)
  }
  return bytes.subarray(end >= mark.length && mark.equals(bytes.subarray(0, mark.length)) ? mark.length : 0, end)
}

const enlarged = (bytes: Buffer, end: number, size: number): Buffer => {
  const larger = Buffer.allocUnsafeSlow(size)
  bytes.copy(larger, 0, 0, end)
  return larger
}
