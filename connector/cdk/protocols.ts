import { createAirbyteDecoder } from './airbyte/decode'
import { createAirbyteEncoder } from './airbyte/encode'
import { readMessageLine } from './message-line'
import type { Protocol } from './protocol'
import { createSingerDecoder } from './singer/decode'
import { createSingerEncoder } from './singer/encode'

/** Singer declares its streams with SCHEMA lines; its states have a `value`. */
const isSingerLine = (bytes: Buffer): boolean => {
  const line = readMessageLine({ bytes, number: 1 })
  return line !== undefined && (line.type === 'SCHEMA' || line.members.has('value'))
}

/**
 * The protocols that the programs speak. Unless the caller names the protocol of an input, the first one that
 * recognizes its first message decodes it, or Airbyte if none does.
 */
export const protocols = {
  airbyte: {
    name: 'Airbyte',
    recognizes: (bytes) => readMessageLine({ bytes, number: 1 }) !== undefined && !isSingerLine(bytes),
    createEncoder: createAirbyteEncoder,
    createDecoder: createAirbyteDecoder,
  },
  singer: {
    name: 'Singer',
    recognizes: isSingerLine,
    createEncoder: createSingerEncoder,
    createDecoder: createSingerDecoder,
  },
} as const satisfies Readonly<Record<string, Protocol>>
