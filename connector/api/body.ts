import type { Readable } from 'node:stream'

const smallest = 1 << 16

/**
 * The bytes of an answer in one buffer, without the pieces they came in; none once there are more than `limit`.
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
  return bytes.subarray(0, end)
}

const enlarged = (bytes: Buffer, end: number, size: number): Buffer => {
  const larger = Buffer.allocUnsafeSlow(size)
  bytes.copy(larger, 0, 0, end)
  return larger
}
