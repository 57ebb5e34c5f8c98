import type { DuckDBDataChunk, DuckDBResult, DuckDBType, DuckDBValue, DuckDBVector } from '@duckdb/node-api'
import { loadDuckdb } from './duckdb'
import { type RowValues, toRowValues } from './values'

type RawVector = Parameters<typeof DuckDBVector.create>[0]
type Bindings = { readonly data_chunk_get_vector: (chunk: DuckDBDataChunk['chunk'], column: number) => RawVector }

/** The bindings that DuckDB's client uses, wherever a package manager has put them. */
const loadBindings = (): Bindings =>
  require(require.resolve('@duckdb/node-bindings', { paths: [require.resolve('@duckdb/node-api')] }))

/** DuckDB's own decoder drops a leading byte order mark, which would make two texts equal. This one keeps it. */
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

/** How values that contain text are read: as values of `type`, which has bytes instead of text, and then decoded. */
type TextReader = { readonly type: DuckDBType; readonly decode: (value: DuckDBValue) => DuckDBValue }

/** Undefined for a type that contains no text. */
const findTextReader = (type: DuckDBType): TextReader | undefined => {
  const duckdb = loadDuckdb()
  const { DuckDBTypeId } = duckdb
  if (type.typeId === DuckDBTypeId.VARCHAR)
    return {
      type: duckdb.BLOB,
      decode: (value) => (value instanceof duckdb.DuckDBBlobValue ? decoder.decode(value.bytes) : value),
    }
  if (type.typeId === DuckDBTypeId.LIST || type.typeId === DuckDBTypeId.ARRAY) {
    const items = findTextReader(type.valueType)
    if (items === undefined) return undefined
    const decodeItems = (value: DuckDBValue): DuckDBValue =>
      value instanceof duckdb.DuckDBListValue
        ? new duckdb.DuckDBListValue(value.items.map(items.decode))
        : value instanceof duckdb.DuckDBArrayValue
          ? new duckdb.DuckDBArrayValue(value.items.map(items.decode))
          : value
    const listType = type.typeId === DuckDBTypeId.LIST ? duckdb.LIST(items.type) : duckdb.ARRAY(items.type, type.length)
    return { type: listType, decode: decodeItems }
  }
  return findMemberReader(type)
}

/** The same for types whose values have members of several types. */
const findMemberReader = (type: DuckDBType): TextReader | undefined => {
  const duckdb = loadDuckdb()
  const { DuckDBTypeId } = duckdb
  const findAll = (types: ReadonlyArray<DuckDBType>): ReadonlyArray<TextReader> | undefined => {
    const found = types.map(findTextReader)
    if (found.every((reader) => reader === undefined)) return undefined
    return types.map((each, i) => found[i] ?? { type: each, decode: (value) => value })
  }
  const toTypes = (readers: ReadonlyArray<TextReader>) => readers.map((reader) => reader.type)
  if (type.typeId === DuckDBTypeId.STRUCT) {
    const readers = findAll(type.entryTypes)
    if (readers === undefined) return undefined
    const decodeEntries = (entries: Readonly<Record<string, DuckDBValue>>) =>
      Object.fromEntries(type.entryNames.map((name, i) => [name, readers[i]?.decode(entries[name] ?? null) ?? null]))
    return {
      type: new duckdb.DuckDBStructType(type.entryNames, toTypes(readers)),
      decode: (value) =>
        value instanceof duckdb.DuckDBStructValue ? new duckdb.DuckDBStructValue(decodeEntries(value.entries)) : value,
    }
  }
  if (type.typeId === DuckDBTypeId.MAP) {
    const [key, item] = findAll([type.keyType, type.valueType]) ?? []
    if (key === undefined || item === undefined) return undefined
    const decodeEntry = (entry: { readonly key: DuckDBValue; readonly value: DuckDBValue }) => ({
      key: key.decode(entry.key),
      value: item.decode(entry.value),
    })
    return {
      type: duckdb.MAP(key.type, item.type),
      decode: (value) =>
        value instanceof duckdb.DuckDBMapValue ? new duckdb.DuckDBMapValue(value.entries.map(decodeEntry)) : value,
    }
  }
  if (type.typeId !== DuckDBTypeId.UNION) return undefined
  const readers = findAll(type.memberTypes)
  if (readers === undefined) return undefined
  return {
    type: new duckdb.DuckDBUnionType(type.memberTags, toTypes(readers)),
    decode: (value) =>
      value instanceof duckdb.DuckDBUnionValue
        ? new duckdb.DuckDBUnionValue(
            value.tag,
            readers[type.memberIndexForTag(value.tag)]?.decode(value.value) ?? null,
          )
        : value,
  }
}

type Rows = ReadonlyArray<ReadonlyArray<DuckDBValue>>

/** Reads the values of one column of a chunk. */
type ColumnReader = (chunk: DuckDBDataChunk, column: number) => (row: number) => DuckDBValue

const createColumnReader = (type: DuckDBType, bindings: Bindings): ColumnReader => {
  const reader = findTextReader(type)
  if (reader === undefined)
    return (chunk, column) => {
      const vector = chunk.getColumnVector(column)
      return (row) => vector.getItem(row) as DuckDBValue
    }
  const { DuckDBBlobVector, DuckDBVector } = loadDuckdb()
  return (chunk, column) => {
    const raw = bindings.data_chunk_get_vector(chunk.chunk, column)
    const vector = DuckDBVector.create(raw, chunk.rowCount, reader.type)
    // A column of text, as most are, is decoded without copying its bytes.
    if (vector instanceof DuckDBBlobVector)
      return (row) => {
        const bytes = vector.getItemBytes(row)
        return bytes === null ? null : decoder.decode(bytes)
      }
    return (row) => reader.decode(vector.getItem(row) as DuckDBValue)
  }
}

/** Reads the rows of a result chunk by chunk, with each text exactly as in DuckDB. */
export async function* readChunks(result: DuckDBResult): AsyncGenerator<Rows, void> {
  const bindings = loadBindings()
  const readers = result.columnTypes().map((type) => createColumnReader(type, bindings))
  for await (const chunk of result) {
    const columns = readers.map((readColumn, column) => readColumn(chunk, column))
    yield Array.from({ length: chunk.rowCount }, (_, row) => columns.map((readValue) => readValue(row)))
  }
}

/** All rows of a result as JavaScript values, by column name. */
export const readRowValues = async (result: DuckDBResult): Promise<ReadonlyArray<RowValues>> => {
  const { JSDuckDBValueConverter: convert } = loadDuckdb()
  const names = result.deduplicatedColumnNames()
  const types = result.columnTypes()
  const rows: RowValues[] = []
  for await (const chunk of readChunks(result))
    for (const row of chunk)
      rows.push(
        toRowValues(
          Object.fromEntries(types.map((type, i) => [names[i] ?? '', convert(row[i] ?? null, type, convert)] as const)),
        ),
      )
  return rows
}
