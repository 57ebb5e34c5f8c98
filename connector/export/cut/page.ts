import { isUtf8 } from 'node:buffer'
import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import type * as t from 'io-ts'
import { type ApiError, applicationError, createBufferPool, ExportFilter, isExportError } from '../../api'
import {
  CLOSE_ARRAY,
  createSyntaxError,
  decodeString,
  firstElement,
  firstMember,
  JsonSyntaxError,
  nextElement,
  nextMember,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
  skipColon,
  skipSpace,
  skipString,
  skipValue,
} from '../../cdk/json/scanner'
import {
  CutError,
  type CutState,
  createCutError,
  createCutState,
  createPlaceTable,
  type PageOptions,
  type PlaceTable,
} from './cut-state'
import { createOutputBuffer } from './edit'
import { createOffsetTable } from './offsets'
import { type CutRecord, type RecordShape, readRecord, toCutRecord } from './record'
import { compileShape, type FieldTree, type PrivacyAction } from './shape'

/** An answer of an export, cut into records. */
export type CutPage = {
  readonly rows: ReadonlyArray<CutRecord>
  readonly filter: ExportFilter
  /** Paths of attributes that no codec declares, such as `reviews.contents.mood`. */
  readonly unknownPaths: ReadonlyArray<string>
  /** Call it when the rows are no longer read: their bytes may then be overwritten. */
  readonly release?: () => void
  /** The answer contained the list of records, even an empty one. */
  readonly hasList: boolean
}

export type CutOptions = PageOptions & {
  /** What a record must be. Its key and cursor are the top-level attributes with those names. */
  readonly codec: t.Any
  readonly primaryKey: string
  readonly cursor: string
  /** Top-level attributes that arrive under another name: from that name to the declared one. */
  readonly aliases?: Readonly<Record<string, string>>
  /** Privacy by path, such as `contents.response`; array elements add no step to a path. */
  readonly actions?: Readonly<Record<string, PrivacyAction>>
  /** The fields of a record whose offsets are recorded, for `createOffsetReader`. */
  readonly fields?: FieldTree | undefined
}

/** Cuts the bytes of an answer into records. The records are views of these bytes. */
export type Cutter = (body: Uint8Array) => E.Either<ApiError, CutPage>

/**
 * Compiles a codec into a cutter. It reads the bytes once, as strictly as JSON.parse, and checks every declared
 * attribute. A value of the wrong type becomes null, and the change is reported; a broken envelope, key or cursor is a
 * `Left`. Calls may be nested: they share nothing but free buffers.
 */
export const createCutter = (options: CutOptions): Cutter => {
  const aliases = options.aliases ?? {}
  const record = { shape: compileShape({ ...options, aliases, actions: options.actions ?? {} }), aliases }
  const outputPool = createBufferPool()
  const offsetPool = createBufferPool()
  // Pages are alike, so a call reuses the guesses of an earlier one, but never those of a call in progress.
  const freeTables: PlaceTable[] = []
  return (body) => {
    const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
    if (!isUtf8(bytes)) return E.left(decodeError('$', 'not UTF-8'))
    const output = createOutputBuffer(outputPool, bytes.length)
    // Somewhat more than the offsets of a page of reviews need.
    const offsets = options.fields === undefined ? undefined : createOffsetTable(offsetPool, (bytes.length * 3) >> 3)
    const table = freeTables.pop() ?? createPlaceTable()
    try {
      return readEnvelope(createCutState(bytes, options, table, new Set(), output, offsets), record)
    } catch (error) {
      if (error instanceof CutError) return E.left(error.error)
      if (error instanceof JsonSyntaxError) return E.left(decodeError('$', error.message))
      throw error
    } finally {
      freeTables.push(table)
    }
  }
}

const decodeError = (path: string, message: string): ApiError => ({ _tag: 'Decode', path, message })

/** Reads a whole answer: the list and `filter` in any order. Other members must be valid JSON and are ignored. */
const readEnvelope = (state: CutState, record: RecordShape): E.Either<ApiError, CutPage> => {
  const { scanner } = state
  const { bytes } = scanner
  const { list } = state.options
  let rows: ReadonlyArray<CutRecord> | undefined
  const found: { filter?: unknown; status?: unknown } = {}
  const open = skipSpace(scanner, 0)
  if (bytes[open] !== OPEN_OBJECT) {
    expectEnd(state, skipValue(scanner, open))
    return E.left(decodeError('$', 'expected an object'))
  }
  let key = firstMember(scanner, open)
  while (bytes[key] === QUOTE) {
    const keyEnd = skipString(scanner, key + 1)
    const name = decodeString(scanner, key, keyEnd)
    const from = skipColon(scanner, keyEnd)
    let end: number
    if (name === list && bytes[from] === OPEN_ARRAY) {
      if (rows !== undefined) throw createCutError(`$.${name}`, 'there twice')
      const records: CutRecord[] = []
      end = readRecords(state, record, from, records)
      rows = records
    } else {
      end = skipValue(scanner, from)
      if (name === list && bytes[from] !== 0x6e) throw createCutError(`$.${name}`, 'expected an array')
      if (name === 'filter' || name === 'status') {
        if (found[name] !== undefined) throw createCutError(`$.${name}`, 'there twice')
        found[name] = JSON.parse(bytes.toString('utf8', from, end))
      }
    }
    key = nextMember(scanner, end)
  }
  expectEnd(state, key + 1)
  return toCutPage(state, rows, found.filter ?? undefined, found.status ?? undefined)
}

/** Adds the records of the list at `open` to `rows` and returns the position after the list. */
const readRecords = (state: CutState, record: RecordShape, open: number, rows: CutRecord[]): number => {
  const { scanner } = state
  let p = firstElement(scanner, open)
  while (scanner.bytes[p] !== CLOSE_ARRAY) {
    state.recordIndex = rows.length
    const end = readRecord(state, record, p)
    rows.push(toCutRecord(state, record, p, end))
    p = nextElement(scanner, end)
  }
  return p + 1
}

const expectEnd = ({ scanner }: CutState, at: number): void => {
  const end = skipSpace(scanner, at)
  if (end < scanner.bytes.length) throw createSyntaxError(scanner, end)
}

/** An answer with neither records nor an echo of the filter, or with an error status instead, never ends an export. */
const toCutPage = (
  state: CutState,
  rows: ReadonlyArray<CutRecord> | undefined,
  filter: unknown,
  status: unknown,
): E.Either<ApiError, CutPage> => {
  if (status !== undefined && isExportError(status, rows?.length))
    return E.left(applicationError(status, 'no message', rows === undefined ? `$.${state.options.list}` : undefined))
  if (rows === undefined && filter === undefined)
    return E.left(decodeError('$', `neither ${state.options.list} nor filter`))
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
        unknownPaths: [...state.undeclaredPaths],
        hasList: rows !== undefined,
        release: () => {
          state.output?.release()
          state.offsets?.release()
        },
      }),
    ),
  )
}
