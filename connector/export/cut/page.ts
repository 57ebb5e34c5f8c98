import { isUtf8 } from 'node:buffer'
import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import type * as t from 'io-ts'
import { type ApiError, applicationError, createBufferPool, ExportFilter, isSuccessStatus } from '../../api'
import type { CutRecord, ExportPage } from '../export-page'
import { CutError, type CutState, createCutError, createCutState, createOutputBuffer, createSyntaxError } from './edit'
import { createOffsetTable } from './offsets'
import { type RecordShape, readRecord, toCutRecord } from './record'
import { compileShape, type FieldTree, type PrivacyAction } from './shape'
import {
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  COMMA,
  decodeString,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
  skipColon,
  skipSpace,
  skipString,
  skipValue,
} from './tokens'

/** An answer of an export, cut; `listed`: it named its records, be they none. */
export type CutPage = Pick<ExportPage, 'rows' | 'filter' | 'unknownPaths' | 'release'> & { readonly hasList: boolean }

/** Walks a whole answer: `list` and `filter` in any order, all else passed over. Throws `Refused`. */
export const readEnvelope = (walk: CutState, record: RecordShape): E.Either<ApiError, CutPage> => {
  const { bytes } = walk
  let rows: ReadonlyArray<CutRecord> | undefined
  const found: { filter?: unknown; status?: unknown } = {}
  let p = skipSpace(walk, 0)
  if (bytes[p] !== OPEN_OBJECT)
    return expectEnd(walk, skipValue(walk, p, 0), E.left(decodeError('$', 'expected an object')))
  p = skipSpace(walk, p + 1)
  for (let more = bytes[p] !== CLOSE_OBJECT; more; ) {
    if (bytes[p] !== QUOTE) throw createSyntaxError(walk, p)
    const end = skipString(walk, p + 1)
    const name = decodeString(walk, p, end)
    const from = skipColon(walk, end)
    if (name === walk.list && bytes[from] === OPEN_ARRAY) {
      if (rows !== undefined) throw createCutError(`$.${name}`, 'there twice')
      const records: CutRecord[] = []
      p = readRecords(walk, record, from, records)
      rows = records
    } else {
      p = skipValue(walk, from, 0)
      if (name === walk.list && bytes[from] !== 0x6e) throw createCutError(`$.${name}`, 'expected an array')
      if (name === 'filter' || name === 'status') {
        if (found[name] !== undefined) throw createCutError(`$.${name}`, 'there twice')
        found[name] = JSON.parse(bytes.toString('utf8', from, p))
      }
    }
    p = skipSpace(walk, p)
    more = bytes[p] === COMMA
    if (more) p = skipSpace(walk, p + 1)
    else if (bytes[p] !== CLOSE_OBJECT) throw createSyntaxError(walk, p)
  }
  return expectEnd(walk, p + 1, toCutPage(walk, rows, found.filter ?? undefined, found.status ?? undefined))
}

const readRecords = (walk: CutState, record: RecordShape, open: number, rows: CutRecord[]): number => {
  const { bytes } = walk
  let p = skipSpace(walk, open + 1)
  if (bytes[p] === CLOSE_ARRAY) return p + 1
  for (;;) {
    walk.recordIndex = rows.length
    const end = readRecord(walk, record, p)
    rows.push(toCutRecord(walk, record, p, end))
    p = skipSpace(walk, end)
    if (bytes[p] === CLOSE_ARRAY) return p + 1
    if (bytes[p] !== COMMA) throw createSyntaxError(walk, p)
    p = skipSpace(walk, p + 1)
  }
}

const expectEnd = <A>(walk: CutState, at: number, answer: A): A => {
  const end = skipSpace(walk, at)
  if (end < walk.bytes.length) throw createSyntaxError(walk, end)
  return answer
}

const decodeError = (path: string, message: string): ApiError => ({ _tag: 'Decode', path, message })

/** What an answer means (design.md): no records and no echo, or a status in their place, is never the end of the rows. */
const toCutPage = (
  walk: CutState,
  rows: ReadonlyArray<CutRecord> | undefined,
  filter: unknown,
  status: unknown,
): E.Either<ApiError, CutPage> => {
  if (status !== undefined && (rows === undefined || (rows.length === 0 && !isSuccessStatus(status))))
    return E.left(applicationError(status, 'no message'))
  if (rows === undefined && filter === undefined) return E.left(decodeError('$', `neither ${walk.list} nor filter`))
  return pipe(
    ExportFilter.decode(filter ?? {}),
    E.bimap(
      ([error]) =>
        decodeError(
          `$.filter${error?.context[1] === undefined ? '' : `.${error.context[1].key}`}`,
          'of the wrong type',
        ),
      (echo) => ({
        rows: rows ?? [],
        filter: echo,
        unknownPaths: [...walk.undeclaredPaths],
        hasList: rows !== undefined,
        release: () => {
          walk.output?.release()
          walk.offsets?.release()
        },
      }),
    ),
  )
}

export type CutOptions = {
  /** What a record must be; its key and cursor are its top-level attributes of those names. */
  readonly codec: t.Any
  /** Where records stand in the envelope. */
  readonly list: string
  readonly primaryKey: string
  readonly cursor: string
  /** Top-level attributes that arrive under another name: from that name to the declared one. */
  readonly aliases?: Readonly<Record<string, string>>
  /** What becomes of undeclared top-level attributes: `keep` collects them in `unknown_attributes`. */
  readonly undeclared: 'keep' | 'drop' | 'fail'
  /** Privacy, by path, such as `contents.response`; arrays are walked. A hash gets a string decoded, all else as text. */
  readonly actions?: Readonly<Record<string, PrivacyAction>>
  /** The members of a record to note the places of, for `outliner`. */
  readonly fields?: FieldTree | undefined
}

/** Cuts the bytes of an answer into records. */
export type Cutter = (body: Uint8Array) => E.Either<ApiError, CutPage>

/**
 * Compiles a codec into a cutter: one walk over the bytes, strict as JSON.parse, that checks every declared attribute.
 * One of the wrong type leaves as null with its change; a broken envelope, key or cursor is a `Left`.
 */
export const createCutter = (options: CutOptions): Cutter => {
  const rename = options.aliases ?? {}
  const record = {
    shape: compileShape({ ...options, aliases: rename, actions: options.actions ?? {} }),
    aliases: rename,
  }
  const buffers = createBufferPool()
  const noted = createBufferPool()
  let serial = 0
  return (body) => {
    const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
    if (!isUtf8(bytes)) return E.left({ _tag: 'Decode', path: '$', message: 'not UTF-8' })
    // Somewhat more than the notes of a page of reviews take.
    const notes = options.fields === undefined ? undefined : createOffsetTable(noted, (bytes.length * 3) >> 3)
    const walk = createCutState(bytes, options, serial, new Set(), createOutputBuffer(buffers, bytes.length), notes)
    try {
      return readEnvelope(walk, record)
    } catch (error) {
      if (error instanceof CutError) return E.left(error.error)
      throw error
    } finally {
      serial = walk.objectSerial
    }
  }
}
