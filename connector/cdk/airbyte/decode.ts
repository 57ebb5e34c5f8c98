import * as E from 'fp-ts/Either'
import * as t from 'io-ts'
import { configFailure, type Failure } from '../failure'
import { type JsonSpan, readMembersAt, readObjectMembers } from '../json/scanner'
import {
  type DestinationStats,
  decodeLines,
  extractMember,
  type InputFeed,
  type InputLine,
  type InputMessage,
  type ParseJson,
  type ProtocolMessage,
} from '../write/input'
import { type ConfiguredStream, streamIdOf } from './catalog'

type DecodedLine = E.Either<Failure, InputMessage>

const OptionalNamespace = t.partial({ namespace: t.union([t.string, t.null]) })
const StreamDescriptor = t.intersection([t.type({ name: t.string }), OptionalNamespace])
const StatusTrace = t.type({ stream_status: t.type({ stream_descriptor: StreamDescriptor, status: t.string }) })
const RecordBody = t.intersection([t.type({ stream: t.string, data: t.UnknownRecord }), OptionalNamespace])
const StreamStateBody = t.type({ stream: t.type({ stream_descriptor: StreamDescriptor }) })

const skipLine = ({ number }: InputLine, why: string): DecodedLine =>
  E.right({ _tag: 'Skipped', message: `Line ${number} of the input ${why} and is passed over.` })

/** Airbyte messages as what they mean to a destination. What is no message is passed over; a record of no configured stream is not. */
export const decodeAirbyte = (configured: ReadonlyArray<ConfiguredStream>, parse: ParseJson) =>
  async function* (input: AsyncIterable<Uint8Array>): InputFeed {
    const find = createStreamLookup(configured)
    const open = new Map(configured.map((one) => [one.id, one]))
    yield E.right(
      configured.map(({ id, name, objectName, key, columns, isDeletion }) => ({
        _tag: 'Opened',
        inlet: { id, name, objectName, key, columns, isDeletion },
      })),
    )
    const meaning = (message: ProtocolMessage | undefined, line: InputLine): DecodedLine | undefined => {
      if (message === undefined) return skipLine(line, 'is no message')
      if (message.type === 'RECORD') return decodeRecord(find, message, line)
      if (message.type === 'STATE') return decodeState(find, message, line)
      const ended = message.type === 'TRACE' ? decodeStreamStatus(find, message) : undefined
      if (ended === undefined) return undefined
      const { inlet, complete } = ended
      open.delete(inlet.id)
      return E.right(
        complete
          ? { _tag: 'Completed', inlet: inlet.id, whole: inlet.isFullRefresh }
          : { _tag: 'Broken', inlet: inlet.id },
      )
    }
    for await (const told of decodeLines(input, parse, meaning)) {
      yield told
      if (E.isLeft(told)) return
    }
    yield E.right([...open.keys()].map((inlet) => ({ _tag: 'Broken', inlet })))
  }

type FindStream = (namespace: string | null | undefined, name: string) => ConfiguredStream | undefined

/** Some clients leave the namespace out of their records: then the name has to do. */
const createStreamLookup = (configured: ReadonlyArray<ConfiguredStream>): FindStream => {
  const byId = new Map(configured.map((one) => [one.id, one]))
  const byName = (name: string) => configured.filter((one) => one.name === name)
  const alone = new Map(configured.filter(({ name }) => byName(name).length === 1).map((one) => [one.name, one]))
  return (namespace, name) => byId.get(streamIdOf(namespace, name)) ?? alone.get(name)
}

const decodeRecord = (find: FindStream, { record: said }: ProtocolMessage, line: InputLine): DecodedLine => {
  if (!RecordBody.is(said))
    return E.left(
      configFailure(`Line ${line.number} of the input is a RECORD without stream or data. Its source is at fault.`),
    )
  const inlet = find(said.namespace, said.stream)
  return inlet === undefined
    ? E.left(
        configFailure(
          `The input has a record of the stream ${said.stream}, which the catalog does not have. Add it to the catalog.`,
        ),
      )
    : E.right({
        _tag: 'Record',
        inlet: inlet.id,
        columns: said.data,
        bytes: line.bytes.length,
        json: () => extractMember(line, 'record', 'record.data'),
      })
}

const decodeState = (find: FindStream, { state: said }: ProtocolMessage, line: InputLine): DecodedLine => {
  const { bytes } = line
  const span = readObjectMembers(bytes, 'state')?.get('state')
  const inside = readMembersAt(bytes, span)
  if (span === undefined || inside === undefined) return skipLine(line, 'is a STATE without a state')
  const { name, namespace } = StreamStateBody.is(said) ? said.stream.stream_descriptor : {}
  const inlet = name === undefined ? undefined : find(namespace, name)
  return E.right({
    _tag: 'State',
    ...(inlet === undefined ? {} : { inlet: inlet.id }),
    answer: (stats) => `${addDestinationStats(bytes, span, inside.get('destinationStats'), stats)}\n`,
  })
}

/** The line as it came with `destinationStats`, whose counts are doubles and must be printed as such. */
const addDestinationStats = (
  bytes: Buffer,
  state: JsonSpan,
  given: JsonSpan | undefined,
  { accepted, rejected }: DestinationStats,
): string => {
  const stats = `{"recordCount":${accepted.toFixed(1)},"rejectedRecordCount":${rejected.toFixed(1)}}`
  const text = (from: number, to?: number) => bytes.toString('utf8', from, to)
  if (given !== undefined) return text(0, given.start) + stats + text(given.end)
  const before = text(0, state.end - 1).trimEnd()
  return `${before}${before.endsWith('{') ? '' : ','}"destinationStats":${stats}}${text(state.end)}`
}

const decodeStreamStatus = (
  find: FindStream,
  { trace }: ProtocolMessage,
): { readonly inlet: ConfiguredStream; readonly complete: boolean } | undefined => {
  if (!StatusTrace.is(trace)) return undefined
  const { stream_descriptor, status } = trace.stream_status
  const inlet = find(stream_descriptor.namespace, stream_descriptor.name)
  return inlet === undefined || (status !== 'COMPLETE' && status !== 'INCOMPLETE')
    ? undefined
    : { inlet, complete: status === 'COMPLETE' }
}
