import * as E from 'fp-ts/Either'
import * as t from 'io-ts'
import { configFailure, type Failure } from '../failure'
import { membersIn, membersOf, type Span, textAt, valueAt } from '../json-span'
import type { Arrival } from './arrival'
import { type Arrivals, arrivals } from './arrivals'
import { columnsOf } from './columns'

type Said = E.Either<Failure, Arrival>
type Line = { readonly bytes: Buffer; readonly members: ReadonlyMap<string, Span>; readonly number: number }

/** How a stream stands: `covered` once a STATE or ACTIVATE_VERSION came after its last record. */
type Standing = { readonly incremental: boolean; covered: boolean }

const Schema = t.type({
  key_properties: t.union([t.readonlyArray(t.string), t.null, t.undefined]),
  bookmark_properties: t.union([t.readonlyArray(t.string), t.null, t.undefined]),
})

const wrong = (number: number, what: string): Said =>
  E.left(
    configFailure(`Line ${number} of the input ${what}. The tap is at fault, or something else writes to its output.`),
  )

/**
 * Singer messages as what they mean to a target. Singer does not say that a stream is complete: at the end of the input all are;
 * and one was whole if its SCHEMA names no bookmark, a STATE came after its last record and the last one names no stream
 * `currently_syncing`.
 */
export async function* singerArrivals(input: AsyncIterable<Uint8Array>): Arrivals {
  const streams = new Map<string, Standing>()
  let syncing = false
  const state = ({ bytes, members, number }: Line): Said => {
    const value = members.get('value')
    if (value === undefined) return wrong(number, 'is a STATE without a value')
    syncing = typeof valueAt(bytes, members.get('value.currently_syncing')) === 'string'
    for (const standing of streams.values()) standing.covered = true
    return E.right({ _tag: 'State', answer: () => `${bytes.toString('utf8', value.start, value.end)}\n` })
  }
  const activate = ({ bytes, members }: Line): void => {
    const standing = streams.get(textAt(bytes, members.get('stream')) ?? '')
    if (standing !== undefined) standing.covered = true
  }
  const meaning = (bytes: Buffer, number: number): Said | undefined => {
    const members = membersOf(bytes, 'value')
    const type = members && textAt(bytes, members.get('type'))
    if (members === undefined || type === undefined) return wrong(number, 'is no Singer message')
    const line = { bytes, members, number }
    switch (type) {
      case 'SCHEMA':
        return schema(streams, line)
      case 'RECORD':
        return record(streams, line)
      case 'STATE':
        return state(line)
      case 'ACTIVATE_VERSION':
        activate(line)
        return undefined
      default:
        return wrong(number, `has the type ${type}, which a target does not take`)
    }
  }
  for await (const told of arrivals(input, meaning)) {
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

const schema = (streams: Map<string, Standing>, { bytes, members, number }: Line): Said => {
  const stream = textAt(bytes, members.get('stream'))
  const given = {
    key_properties: valueAt(bytes, members.get('key_properties')),
    bookmark_properties: valueAt(bytes, members.get('bookmark_properties')),
  }
  const columns = membersIn(bytes, members.get('schema')) && valueAt(bytes, members.get('schema'))
  if (stream === undefined || columns === undefined || !Schema.is(given))
    return wrong(number, 'is a SCHEMA that lacks stream or schema, or names its keys wrongly')
  streams.set(stream, { incremental: (given.bookmark_properties ?? []).length > 0, covered: false })
  return E.right({
    _tag: 'Opened',
    inlet: {
      id: stream,
      name: stream,
      object: stream,
      key: (given.key_properties ?? []).map((name) => [name]),
      columns: columnsOf(columns),
      deletes: false,
    },
  })
}

const record = (streams: ReadonlyMap<string, Standing>, { bytes, members, number }: Line): Said => {
  const stream = textAt(bytes, members.get('stream'))
  const data = members.get('record')
  if (stream === undefined || data === undefined || bytes[data.start] !== 0x7b)
    return wrong(number, 'is a RECORD without stream or record')
  const standing = streams.get(stream)
  if (standing === undefined) return wrong(number, `is a RECORD of ${stream} before its SCHEMA`)
  standing.covered = false
  return E.right({ _tag: 'Record', inlet: stream, json: bytes.subarray(data.start, data.end) })
}
