import { isUtf8 } from 'node:buffer'
import { randomUUID } from 'node:crypto'
import { closeSync, openSync, readSync, unlinkSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { StringDecoder } from 'node:string_decoder'
import type { Row } from '../../cdk'
import { tombstoneColumnNames } from '../../cdk'
import { isLakePath } from '../store/lake-access'

/**
 * Where a stream's records wait for the next commit: a file without a name, so nobody else can open it, with one record
 * per line. DuckDB reads it with all threads, and waiting records take no memory.
 */
export type Spool = {
  /** `at`: when the record was read, milliseconds since 1970. */
  readonly add: (row: Row, at: number) => void
  readonly count: () => number
  /**
   * SQL that is true for records that are never written because they belong to a forgotten person; undefined: all are
   * written.
   */
  readonly forgotten: string | undefined
  /**
   * The table `(_seq, _at, _changes, _json)` in SQL, with the records that are written, or those that are not. Nothing
   * may be added afterwards.
   */
  readonly toSql: (which?: 'kept' | 'forgotten') => string
  /** Some text in it is the name of an attribute that marks tombstones. */
  readonly mentionsTombstones: () => boolean
  /** The records as text, in order. */
  readonly records: () => Iterable<SpooledRecord>
  readonly close: () => void
}

/** Reviews received once for several streams. */
export type SharedSpool = {
  readonly streams: ReadonlyArray<string>
  readonly spool: Spool
  /** Objects inside them may have undeclared members. */
  readonly hasUndeclared: boolean
}

/** `changes`: the comma-separated entries of its `_airbyte_meta`. */
type SpooledRecord = { readonly at: number; readonly changes: string; readonly json: string }

/** Separates the fields of a line. It never occurs in JSON text. */
const separator = '\u0001'
const bufferBytes = 131_072
/**
 * DuckDB reads the file in blocks of this size, one per thread at a time, and types a whole block at once. Larger ones
 * only take memory.
 */
const blockBytes = 256_000

/** `path`: the snapshot file; the spool is on the same disk. `forgotten`: SQL over `_json`. */
export const createSpool = (path: string, forgotten?: string): Spool => {
  let buffer: Buffer = Buffer.allocUnsafe(16_384)
  let used = 0
  let count = 0
  let longest = 0
  let mentionsTombstones = false
  let file: number | undefined
  const writeOut = (): number => {
    file ??= openUnnamedFile(path)
    const text = cleanText(buffer.subarray(0, used))
    mentionsTombstones ||= tombstoneColumnNames.some((name) => text.includes(name))
    for (let from = 0; from < text.length; ) from += writeSync(file, text, from)
    used = 0
    return file
  }
  return {
    add: ({ json, changes = [] }, at) => {
      const changeText = changes.map((change) => JSON.stringify(change)).join(',')
      const head = `${count}${separator}${at}${separator}${changeText}${separator}`
      const encoding = changeText === '' ? 'latin1' : 'utf8'
      const length = Buffer.byteLength(head, encoding) + json.length + 2
      if (used + length > buffer.length) {
        if (used >= bufferBytes / 2) writeOut()
        if (used + length > buffer.length) buffer = enlarge(buffer, used, used + length)
      }
      used += buffer.write(head, used, encoding)
      buffer.set(json, used)
      used += json.length
      // An empty text is not JSON; as an empty field it would count as null.
      if (json.length === 0) buffer[used++] = 0x20
      buffer[used++] = 0x0a
      count += 1
      if (length > longest) longest = length
    },
    count: () => count,
    forgotten,
    toSql: (which = 'kept') => {
      const largest = Math.max(blockBytes, longest + 1024)
      const where = forgotten === undefined ? '' : `WHERE ${which === 'kept' ? 'NOT ' : ''}${forgotten}`
      return `(
        SELECT * FROM read_csv('/dev/fd/${writeOut()}',
          columns = {'_seq': 'BIGINT', '_at': 'BIGINT', '_changes': 'VARCHAR', '_json': 'VARCHAR'},
          auto_detect = false, header = false, delim = '${separator}', quote = '', escape = '', new_line = '\\n',
          max_line_size = ${largest}, buffer_size = ${largest}) ${where})`
    },
    mentionsTombstones: () => {
      writeOut()
      return mentionsTombstones
    },
    records: () => readRecords(writeOut()),
    close: () => {
      if (file !== undefined) closeSync(file)
      file = undefined
    },
  }
}

const enlarge = (buffer: Buffer, used: number, needed: number): Buffer => {
  const larger = Buffer.allocUnsafe(Math.max(needed, Math.min(buffer.length * 2, bufferBytes)))
  buffer.copy(larger, 0, 0, used)
  return larger
}

/** A file without a name disappears with its process, however that ends. */
const openUnnamedFile = (path: string): number => {
  const name = `${path === ':memory:' || isLakePath(path) ? join(tmpdir(), 'feedback') : path}.${randomUUID()}.spool`
  const file = openSync(name, 'wx+', 0o600)
  unlinkSync(name)
  return file
}

const surrogatePattern =
  /\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\./g

/**
 * Replaces a lone half of a surrogate pair, which JSON allows as an escape and DuckDB does not, with U+FFFD, as well as
 * bytes that are not UTF-8. Replaces a carriage return, which can only stand between two tokens, with a space: DuckDB
 * would treat it as the end of the line.
 */
const cleanText = (text: Buffer): Buffer => {
  const isClean = isUtf8(text) && !text.includes('\\ud') && !text.includes('\\uD') && !text.includes(0x0d)
  if (isClean) return text
  return Buffer.from(
    text
      .toString()
      .replaceAll('\r', ' ')
      .replace(surrogatePattern, (found, lone: string | undefined) => (lone === undefined ? found : '\\ufffd')),
  )
}

function* readRecords(file: number): Iterable<SpooledRecord> {
  const decoder = new StringDecoder()
  const buffer = Buffer.allocUnsafe(bufferBytes)
  let rest = ''
  for (let position = 0; ; ) {
    const length = readSync(file, buffer, 0, buffer.length, position)
    if (length === 0) return
    position += length
    const lines = (rest + decoder.write(buffer.subarray(0, length))).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      const [, at, changes = '', ...json] = line.split(separator)
      yield { at: Number(at), changes, json: json.join(separator) }
    }
  }
}

/** Splits the records of a spool into several; `places`: the spool of each record, from 0. */
export const splitSpool = (spool: Spool, path: string, places: Uint8Array, count: number): ReadonlyArray<Spool> => {
  const spools = Array.from({ length: count }, () => createSpool(path, spool.forgotten))
  let number = 0
  for (const { at, changes, json } of spool.records()) {
    spools[places[number] ?? 0]?.add({ json: Buffer.from(json), changes: JSON.parse(`[${changes}]`) }, at)
    number += 1
  }
  return spools
}
