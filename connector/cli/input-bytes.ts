import { createReadStream } from 'node:fs'
import { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { CommandError, configFailure } from '../cdk'

const errorCode = (error: unknown): string => (error as NodeJS.ErrnoException).code ?? String(error)

/** The bytes of a file. */
export async function* readFileBytes(path: string): AsyncIterable<Uint8Array> {
  try {
    yield* createReadStream(path)
  } catch (error) {
    throw new CommandError(configFailure(`${path} cannot be read (${errorCode(error)}). Check the path.`))
  }
}

/** The same bytes; what begins as gzip does is unpacked. */
export async function* decompressBytes(input: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  const items = input[Symbol.asyncIterator]()
  const first = await items.next()
  if (first.done === true) return
  const whole = (async function* () {
    yield first.value
    for (let next = await items.next(); next.done !== true; next = await items.next()) yield next.value
  })()
  if (first.value[0] !== 0x1f || first.value[1] !== 0x8b) return yield* whole
  const packed = Readable.from(whole)
  const plain = createGunzip()
  packed.on('error', (error) => plain.destroy(error))
  try {
    yield* packed.pipe(plain)
  } catch (error) {
    throw error instanceof CommandError
      ? error
      : new CommandError(configFailure(`The input looks like gzip, but cannot be unpacked (${errorCode(error)}).`))
  }
}
