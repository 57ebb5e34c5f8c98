import { createHash } from 'node:crypto'
import type { Connection, Descriptor, Json } from './connection'

const mappersOf = ({ mappers = [] }: Connection, stream: string) => mappers.filter((mapper) => mapper.stream === stream)

/** The name of a column after the mappers. */
export const mapColumn = (connection: Connection, stream: string, column: string): string =>
  mappersOf(connection, stream).reduce((name, mapper) => {
    if (mapper.kind === 'rename' && mapper.from === name) return mapper.to
    return mapper.kind === 'hash' && mapper.column === name ? `${name}_hashed` : name
  }, column)

const hash = (value: unknown): string => createHash('sha256').update(String(value)).digest('hex')

/** A record's data after the mappers; undefined if a row filter drops it. */
export const mapRecord = (connection: Connection, stream: string, data: Json): Json | undefined =>
  mappersOf(connection, stream).reduce<Json | undefined>((row, mapper) => {
    if (row === undefined) return undefined
    if (mapper.kind === 'filter') return mapper.keep(row) ? row : undefined
    const column = mapper.kind === 'rename' ? mapper.from : mapper.column
    if (!(column in row)) return row
    const { [column]: value, ...others } = row
    return mapper.kind === 'rename'
      ? { ...others, [mapper.to]: value }
      : { ...others, [`${column}_hashed`]: hash(value) }
  }, data)

/**
 * Prefix and namespace are put on catalogue, records and states for the destination. airbyte-platform:
 * NamespacingMapper.
 */
export const toDestinationName = ({ prefix = '', namespace }: Connection, { name, ...own }: Descriptor): Descriptor => {
  const space = namespace ?? own.namespace
  return { name: `${prefix}${name}`, ...(space === undefined || space === null ? {} : { namespace: space }) }
}

/** And taken back from states: the source's own name. */
export const toSourceName = (connection: Connection, descriptor: Descriptor): Descriptor => {
  const known = connection.streams.find(({ stream }) => {
    const there = toDestinationName(connection, stream)
    return there.name === descriptor.name && (there.namespace ?? null) === (descriptor.namespace ?? null)
  })
  if (known === undefined) return descriptor
  const { name, namespace } = known.stream
  return { name, ...(namespace === undefined ? {} : { namespace }) }
}

/** Renames the streams of a state. */
export const renameState = (state: Json, rename: (descriptor: Descriptor) => Descriptor): Json => {
  const renameStream = (stream: Json): Json => ({
    ...stream,
    stream_descriptor: rename(stream.stream_descriptor as Descriptor),
  })
  if (state.type !== 'GLOBAL') return { ...state, stream: renameStream(state.stream as Json) }
  const global = state.global as Json
  const streams = (global.stream_states ?? []) as ReadonlyArray<Json>
  return { ...state, global: { ...global, stream_states: streams.map(renameStream) } }
}
