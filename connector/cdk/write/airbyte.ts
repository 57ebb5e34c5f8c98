import * as E from 'fp-ts/Either'
import * as t from 'io-ts'
import { configFailure, type Failure } from '../failure'
import { membersIn, membersOf, type Span, textAt, valueAt } from '../json-span'
import { type Configured, idOf } from './airbyte-catalog'
import type { Arrival, Stats } from './arrival'
import { type Arrivals, arrivals } from './arrivals'

type Line = { readonly bytes: Buffer; readonly members: ReadonlyMap<string, Span>; readonly number: number }
type Said = E.Either<Failure, Arrival>

const StatusTrace = t.type({
  stream_status: t.type({
    stream_descriptor: t.intersection([
      t.type({ name: t.string }),
      t.partial({ namespace: t.union([t.string, t.null]) }),
    ]),
    status: t.string,
  }),
})

const skipped = (number: number, why: string): Said =>
  E.right({ _tag: 'Skipped', message: `Line ${number} of the input ${why} and is passed over.` })

/** Airbyte messages as what they mean to a destination. What is no message is passed over; a record of no configured stream is not. */
export const airbyteArrivals = (configured: ReadonlyArray<Configured>) =>
  async function* (input: AsyncIterable<Uint8Array>): Arrivals {
    const find = finder(configured)
    const open = new Map(configured.map((one) => [one.id, one]))
    yield E.right(
      configured.map(({ id, name, object, key, columns, deletes }) => ({
        _tag: 'Opened',
        inlet: { id, name, object, key, columns, deletes },
      })),
    )
    const meaning = (bytes: Buffer, number: number): Said | undefined => {
      const members = membersOf(bytes, 'record')
      const type = members && textAt(bytes, members.get('type'))
      if (members === undefined || type === undefined) return skipped(number, 'is no message')
      const line = { bytes, members, number }
      if (type === 'RECORD') return record(find, line)
      if (type === 'STATE') return state(find, line)
      const ended = type === 'TRACE' ? ending(find, line) : undefined
      if (ended === undefined) return undefined
      const { inlet, complete } = ended
      open.delete(inlet.id)
      return E.right(
        complete
          ? { _tag: 'Completed', inlet: inlet.id, whole: inlet.fullRefresh }
          : { _tag: 'Broken', inlet: inlet.id },
      )
    }
    for await (const told of arrivals(input, meaning)) {
      yield told
      if (E.isLeft(told)) return
    }
    yield E.right([...open.keys()].map((inlet) => ({ _tag: 'Broken', inlet })))
  }

type Find = (namespace: string | undefined, name: string) => Configured | undefined

/** Some clients leave the namespace out of their records: then the name has to do. */
const finder = (configured: ReadonlyArray<Configured>): Find => {
  const byId = new Map(configured.map((one) => [one.id, one]))
  const byName = (name: string) => configured.filter((one) => one.name === name)
  const alone = new Map(configured.filter(({ name }) => byName(name).length === 1).map((one) => [one.name, one]))
  return (namespace, name) => byId.get(idOf(namespace, name)) ?? alone.get(name)
}

const record = (find: Find, { bytes, members, number }: Line): Said => {
  const name = textAt(bytes, members.get('record.stream'))
  const data = members.get('record.data')
  if (name === undefined || data === undefined || bytes[data.start] !== 0x7b)
    return E.left(
      configFailure(`Line ${number} of the input is a RECORD without stream or data. Its source is at fault.`),
    )
  const inlet = find(textAt(bytes, members.get('record.namespace')), name)
  return inlet === undefined
    ? E.left(
        configFailure(
          `The input has a record of the stream ${name}, which the catalog does not have. Add it to the catalog.`,
        ),
      )
    : E.right({ _tag: 'Record', inlet: inlet.id, json: bytes.subarray(data.start, data.end) })
}

const state = (find: Find, { bytes, members, number }: Line): Said => {
  const span = members.get('state')
  const inside = membersIn(bytes, span)
  if (span === undefined || inside === undefined) return skipped(number, 'is a STATE without a state')
  const descriptor = membersIn(bytes, membersIn(bytes, inside.get('stream'))?.get('stream_descriptor'))
  const name = textAt(bytes, descriptor?.get('name'))
  const inlet = name === undefined ? undefined : find(textAt(bytes, descriptor?.get('namespace')), name)
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
  { bytes, members }: Line,
): { readonly inlet: Configured; readonly complete: boolean } | undefined => {
  const trace = valueAt(bytes, members.get('trace'))
  if (!StatusTrace.is(trace)) return undefined
  const { stream_descriptor, status } = trace.stream_status
  const inlet = find(stream_descriptor.namespace ?? undefined, stream_descriptor.name)
  return inlet === undefined || (status !== 'COMPLETE' && status !== 'INCOMPLETE')
    ? undefined
    : { inlet, complete: status === 'COMPLETE' }
}
