import * as E from 'fp-ts/Either'
import * as t from 'io-ts'
import { configFailure, type Failure } from '../failure'
import type { Arrival } from './arrival'
import { type Arrivals, arrivals, bytesOf, type Line, type Message, type Parse } from './arrivals'
import { columnsOf } from './columns'

type Said = E.Either<Failure, Arrival>

/** How a stream stands: `covered` once a STATE or ACTIVATE_VERSION came after its last record. */
type Standing = { readonly incremental: boolean; covered: boolean }

const names = t.union([t.readonlyArray(t.string), t.null])
const Schema = t.intersection([
  t.type({ stream: t.string, schema: t.UnknownRecord }),
  t.partial({ key_properties: names, bookmark_properties: names }),
])
const Record = t.type({ stream: t.string, record: t.UnknownRecord })
const Syncing = t.type({ currently_syncing: t.string })

const wrong = ({ number }: Line, what: string): Said =>
  E.left(
    configFailure(`Line ${number} of the input ${what}. The tap is at fault, or something else writes to its output.`),
  )

/**
 * Singer messages as what they mean to a target. Singer does not say that a stream is complete: at the end of the input all are;
 * and one was whole if its SCHEMA names no bookmark, a STATE came after its last record and the last one names no stream
 * `currently_syncing`.
 */
export const singerArrivals = (parse: Parse) =>
  async function* (input: AsyncIterable<Uint8Array>): Arrivals {
    const streams = new Map<string, Standing>()
    let syncing = false
    const state = (value: unknown, line: Line): Said => {
      if (value === undefined) return wrong(line, 'is a STATE without a value')
      syncing = Syncing.is(value)
      for (const standing of streams.values()) standing.covered = true
      return E.right({ _tag: 'State', answer: () => `${bytesOf(line, '', 'value').toString('utf8')}\n` })
    }
    const activate = (stream: unknown): void => {
      const standing = streams.get(String(stream))
      if (standing !== undefined) standing.covered = true
    }
    const meaning = (message: Message | undefined, line: Line): Said | undefined => {
      switch (message?.type) {
        case undefined:
          return wrong(line, 'is no Singer message')
        case 'SCHEMA':
          return schema(streams, message, line)
        case 'RECORD':
          return record(streams, message, line)
        case 'STATE':
          return state(message?.value, line)
        case 'ACTIVATE_VERSION':
          activate(message?.stream)
          return undefined
        default:
          return wrong(line, `has the type ${message?.type}, which a target does not take`)
      }
    }
    for await (const told of arrivals(input, parse, meaning)) {
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

const schema = (streams: Map<string, Standing>, message: Message | undefined, line: Line): Said => {
  if (!Schema.is(message)) return wrong(line, 'is a SCHEMA that lacks stream or schema, or names its keys wrongly')
  const { stream } = message
  streams.set(stream, { incremental: (message.bookmark_properties ?? []).length > 0, covered: false })
  return E.right({
    _tag: 'Opened',
    inlet: {
      id: stream,
      name: stream,
      object: stream,
      key: (message.key_properties ?? []).map((name) => [name]),
      columns: columnsOf(message.schema),
      deletes: false,
    },
  })
}

const record = (streams: ReadonlyMap<string, Standing>, message: Message | undefined, line: Line): Said => {
  if (!Record.is(message)) return wrong(line, 'is a RECORD without stream or record')
  const standing = streams.get(message.stream)
  if (standing === undefined) return wrong(line, `is a RECORD of ${message.stream} before its SCHEMA`)
  standing.covered = false
  return E.right({
    _tag: 'Record',
    inlet: message.stream,
    columns: message.record,
    bytes: line.bytes.length,
    json: () => bytesOf(line, '', 'record'),
  })
}
