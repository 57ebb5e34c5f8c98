import * as E from 'fp-ts/Either'
import * as t from 'io-ts'
import { configFailure, type Failure } from '../failure'
import { declaredColumns } from '../schema'
import {
  decodeLines,
  extractMember,
  type InputFeed,
  type InputLine,
  type InputMessage,
  type ParseJson,
  type ProtocolMessage,
} from '../write/input'

type DecodedLine = E.Either<Failure, InputMessage>

/** How a stream stands: `covered` once a STATE or ACTIVATE_VERSION came after its last record. */
type StreamCoverage = { readonly incremental: boolean; covered: boolean }

const PropertyNames = t.union([t.readonlyArray(t.string), t.null])
const SchemaLine = t.intersection([
  t.type({ stream: t.string, schema: t.UnknownRecord }),
  t.partial({ key_properties: PropertyNames, bookmark_properties: PropertyNames }),
])
const RecordLine = t.type({ stream: t.string, record: t.UnknownRecord })
const InterruptedState = t.type({ currently_syncing: t.string })

const invalidLine = ({ number }: InputLine, what: string): DecodedLine =>
  E.left(
    configFailure(`Line ${number} of the input ${what}. The tap is at fault, or something else writes to its output.`),
  )

/**
 * Singer messages as what they mean to a target. Singer does not say that a stream is complete: at the end of the input all are;
 * and one was whole if its SCHEMA names no bookmark, a STATE came after its last record and the last one names no stream
 * `currently_syncing`.
 */
export const decodeSinger = (parse: ParseJson) =>
  async function* (input: AsyncIterable<Uint8Array>): InputFeed {
    const streams = new Map<string, StreamCoverage>()
    let syncing = false
    const state = (value: unknown, line: InputLine): DecodedLine => {
      if (value === undefined) return invalidLine(line, 'is a STATE without a value')
      syncing = InterruptedState.is(value)
      for (const standing of streams.values()) standing.covered = true
      return E.right({ _tag: 'State', answer: () => `${extractMember(line, '', 'value').toString('utf8')}\n` })
    }
    const activate = (stream: unknown): void => {
      const standing = streams.get(String(stream))
      if (standing !== undefined) standing.covered = true
    }
    const meaning = (message: ProtocolMessage | undefined, line: InputLine): DecodedLine | undefined => {
      switch (message?.type) {
        case undefined:
          return invalidLine(line, 'is no Singer message')
        case 'SCHEMA':
          return decodeSchema(streams, message, line)
        case 'RECORD':
          return decodeRecord(streams, message, line)
        case 'STATE':
          return state(message?.value, line)
        case 'ACTIVATE_VERSION':
          activate(message?.stream)
          return undefined
        default:
          return invalidLine(line, `has the type ${message?.type}, which a target does not take`)
      }
    }
    for await (const told of decodeLines(input, parse, meaning)) {
      yield told
      if (E.isLeft(told)) return
    }
    yield E.right(
      [...streams].map(([inlet, { incremental, covered }]) => ({
        _tag: 'Completed',
        inlet,
        whole: covered && !incremental && !syncing,
      })),
    )
  }

const decodeSchema = (
  streams: Map<string, StreamCoverage>,
  message: ProtocolMessage | undefined,
  line: InputLine,
): DecodedLine => {
  if (!SchemaLine.is(message))
    return invalidLine(line, 'is a SCHEMA that lacks stream or schema, or names its keys wrongly')
  const { stream } = message
  streams.set(stream, { incremental: (message.bookmark_properties ?? []).length > 0, covered: false })
  return E.right({
    _tag: 'Opened',
    inlet: {
      id: stream,
      name: stream,
      objectName: stream,
      key: (message.key_properties ?? []).map((name) => [name]),
      columns: declaredColumns(message.schema),
      isDeletion: false,
    },
  })
}

const decodeRecord = (
  streams: ReadonlyMap<string, StreamCoverage>,
  message: ProtocolMessage | undefined,
  line: InputLine,
): DecodedLine => {
  if (!RecordLine.is(message)) return invalidLine(line, 'is a RECORD without stream or record')
  const standing = streams.get(message.stream)
  if (standing === undefined) return invalidLine(line, `is a RECORD of ${message.stream} before its SCHEMA`)
  standing.covered = false
  return E.right({
    _tag: 'Record',
    inlet: message.stream,
    columns: message.record,
    bytes: line.bytes.length,
    json: () => extractMember(line, '', 'record'),
  })
}
