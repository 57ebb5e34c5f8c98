import * as E from 'fp-ts/Either'
import * as t from 'io-ts'
import { configFailure, type Failure } from '../failure'
import { membersIn, membersOf, type Span } from '../json-span'
import { type Configured, idOf } from './airbyte-catalog'
import type { Arrival, Stats } from './arrival'
import { type Arrivals, arrivals, bytesOf, type Line, type Message, type Parse } from './arrivals'

type Said = E.Either<Failure, Arrival>

const namespaced = t.partial({ namespace: t.union([t.string, t.null]) })
const Descriptor = t.intersection([t.type({ name: t.string }), namespaced])
const Trace = t.type({ stream_status: t.type({ stream_descriptor: Descriptor, status: t.string }) })
const Record = t.intersection([t.type({ stream: t.string, data: t.UnknownRecord }), namespaced])
const OfStream = t.type({ stream: t.type({ stream_descriptor: Descriptor }) })

const skipped = ({ number }: Line, why: string): Said =>
  E.right({ _tag: 'Skipped', message: `Line ${number} of the input ${why} and is passed over.` })

/** Airbyte messages as what they mean to a destination. What is no message is passed over; a record of no configured stream is not. */
export const airbyteArrivals = (configured: ReadonlyArray<Configured>, parse: Parse) =>
  async function* (input: AsyncIterable<Uint8Array>): Arrivals {
    const find = finder(configured)
    const open = new Map(configured.map((one) => [one.id, one]))
    yield E.right(
      configured.map(({ id, name, object, key, columns, deletes }) => ({
        _tag: 'Opened',
        inlet: { id, name, object, key, columns, deletes },
      })),
    )
    const meaning = (message: Message | undefined, line: Line): Said | undefined => {
      if (message === undefined) return skipped(line, 'is no message')
      if (message.type === 'RECORD') return record(find, message, line)
      if (message.type === 'STATE') return state(find, message, line)
      const ended = message.type === 'TRACE' ? ending(find, message) : undefined
      if (ended === undefined) return undefined
      const { inlet, complete } = ended
      open.delete(inlet.id)
      return E.right(
        complete
          ? { _tag: 'Completed', inlet: inlet.id, whole: inlet.fullRefresh }
          : { _tag: 'Broken', inlet: inlet.id },
      )
    }
    for await (const told of arrivals(input, parse, meaning)) {
      yield told
      if (E.isLeft(told)) return
    }
    yield E.right([...open.keys()].map((inlet) => ({ _tag: 'Broken', inlet })))
  }

type Find = (namespace: string | null | undefined, name: string) => Configured | undefined

/** Some clients leave the namespace out of their records: then the name has to do. */
const finder = (configured: ReadonlyArray<Configured>): Find => {
  const byId = new Map(configured.map((one) => [one.id, one]))
  const byName = (name: string) => configured.filter((one) => one.name === name)
  const alone = new Map(configured.filter(({ name }) => byName(name).length === 1).map((one) => [one.name, one]))
  return (namespace, name) => byId.get(idOf(namespace, name)) ?? alone.get(name)
}

const record = (find: Find, { record: said }: Message, line: Line): Said => {
  if (!Record.is(said))
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
        json: () => bytesOf(line, 'record', 'record.data'),
      })
}

const state = (find: Find, { state: said }: Message, line: Line): Said => {
  const { bytes } = line
  const span = membersOf(bytes, 'state')?.get('state')
  const inside = membersIn(bytes, span)
  if (span === undefined || inside === undefined) return skipped(line, 'is a STATE without a state')
  const { name, namespace } = OfStream.is(said) ? said.stream.stream_descriptor : {}
  const inlet = name === undefined ? undefined : find(namespace, name)
  return E.right({
    _tag: 'State',
    ...(inlet === undefined ? {} : { inlet: inlet.id }),
    answer: (stats) => `${withStats(bytes, span, inside.get('destinationStats'), stats)}\n`,
  })
}

/** The line as it came with `destinationStats`, whose counts are doubles and must be printed as such. */
const withStats = (bytes: Buffer, state: Span, given: Span | undefined, { accepted, rejected }: Stats): string => {
  const stats = `{"recordCount":${accepted.toFixed(1)},"rejectedRecordCount":${rejected.toFixed(1)}}`
  const text = (from: number, to?: number) => bytes.toString('utf8', from, to)
  if (given !== undefined) return text(0, given.start) + stats + text(given.end)
  const before = text(0, state.end - 1).trimEnd()
  return `${before}${before.endsWith('{') ? '' : ','}"destinationStats":${stats}}${text(state.end)}`
}

const ending = (
  find: Find,
  { trace }: Message,
): { readonly inlet: Configured; readonly complete: boolean } | undefined => {
  if (!Trace.is(trace)) return undefined
  const { stream_descriptor, status } = trace.stream_status
  const inlet = find(stream_descriptor.namespace, stream_descriptor.name)
  return inlet === undefined || (status !== 'COMPLETE' && status !== 'INCOMPLETE')
    ? undefined
    : { inlet, complete: status === 'COMPLETE' }
}
