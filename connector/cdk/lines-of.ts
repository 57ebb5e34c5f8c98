const newline = 0x0a
const carriageReturn = 0x0d

/** The lines of a stream of bytes, those of each chunk together, without their ends. A line within a chunk is not copied. */
export async function* splitLines(input: AsyncIterable<Uint8Array>): AsyncIterable<ReadonlyArray<Buffer>> {
  let begun: Array<Buffer> = []
  for await (const bytes of input) {
    const chunk = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const lines: Array<Buffer> = []
    let from = 0
    for (let to = chunk.indexOf(newline); to >= 0; to = chunk.indexOf(newline, from)) {
      lines.push(
        trimCarriageReturn(
          begun.length === 0 ? chunk.subarray(from, to) : Buffer.concat([...begun, chunk.subarray(from, to)]),
        ),
      )
      begun = []
      from = to + 1
    }
    if (from < chunk.length) begun.push(chunk.subarray(from))
    if (lines.length > 0) yield lines
  }
  if (begun.length > 0) yield [trimCarriageReturn(Buffer.concat(begun))]
}

const trimCarriageReturn = (line: Buffer): Buffer => (line.at(-1) === carriageReturn ? line.subarray(0, -1) : line)
