import * as E from 'fp-ts/Either'
import { type ConfiguredCatalog, findStreamById, findStreamByTable } from '../../connector/cdk/catalog'
import { decodeInput, decodeMixedInput } from '../../connector/cdk/input'
import { joinText } from '../../connector/cdk/lines'
import type { Message } from '../../connector/cdk/message'
import type { Protocol } from '../../connector/cdk/protocol'
import { protocols } from '../../connector/cdk/protocols'

/** The bytes in pieces of `size`. */
export async function* inChunks(bytes: Uint8Array, size: number): AsyncIterable<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

/**
 * What a destination decodes from an input: the messages, and the failure that refused the rest, if any; other errors
 * are thrown.
 */
export const decodeForDestination = async (
  protocol: Protocol,
  catalog: ConfiguredCatalog,
  bytes: Uint8Array,
  size: number,
) => {
  const messages: Array<Message> = []
  const decode = decodeInput(protocol, { purpose: 'deliver', now: () => 7, findStream: findStreamById(catalog) })
  for await (const decoded of decode(inChunks(bytes, size))) {
    if (E.isLeft(decoded)) return { messages, refused: decoded.left }
    messages.push(...decoded.right)
  }
  return { messages, refused: undefined }
}

/**
 * What a snapshot decodes from an input, and the failure that refused the rest, if any; without a catalog, the input
 * may contain one.
 */
export const decodeForSnapshot = async (
  input: AsyncIterable<Uint8Array>,
  catalog: ConfiguredCatalog | undefined,
  rows: ReadonlyArray<Protocol> = Object.values(protocols),
) => {
  const messages: Array<Message> = []
  const decode = decodeMixedInput(rows, {
    purpose: 'store',
    now: () => 7,
    findStream: findStreamByTable(catalog ?? []),
    acceptsCatalog: catalog === undefined,
  })
  for await (const decoded of decode(input)) {
    if (E.isLeft(decoded)) return { messages, refused: decoded.left }
    messages.push(...decoded.right)
  }
  return { messages, refused: undefined }
}

/** A state as a destination prints it back after one accepted and no rejected record. */
export const printBack = (protocol: Protocol, message: Message): string =>
  protocol
    .createEncoder({ now: () => 0 })
    .encode(
      message._tag === 'Checkpoint' || message._tag === 'SharedCheckpoint'
        ? { ...message, counts: { accepted: 1, rejected: 0 } }
        : message,
    )
    .lines.map(joinText)
    .join('')

/**
 * The messages of the lines for a destination, one short item each; a failure is its text, a state is what is printed
 * back.
 */
export const summarizeInput = async (
  protocol: Protocol,
  catalog: ConfiguredCatalog,
  lines: ReadonlyArray<unknown>,
): Promise<ReadonlyArray<unknown>> => {
  const text = lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n')
  const { messages, refused } = await decodeForDestination(protocol, catalog, Buffer.from(text), 1 << 20)
  const items = messages.flatMap((message) => summarize(protocol, message))
  return refused === undefined ? items : [...items, refused.message]
}

const summarize = (protocol: Protocol, message: Message): ReadonlyArray<unknown> => {
  switch (message._tag) {
    case 'Started':
      return [['started', message.stream.name, message.stream.primaryKey]]
    case 'Records':
      return message.rows.map(({ json }) => [message.stream, Buffer.from(json).toString()])
    case 'Checkpoint':
      return [['state', message.stream, printBack(protocol, message)]]
    case 'SharedCheckpoint':
      return [['state', undefined, printBack(protocol, message)]]
    case 'Finished':
      return [['finished', message.stream, message.extent]]
    case 'Failed':
      return [['failed', message.stream]]
    case 'Log':
      return [['log', message.level, message.message]]
    case 'TableVersion':
      return [['version', message.stream, message.version, message.active]]
    default:
      return [message]
  }
}
