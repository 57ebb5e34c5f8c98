import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import { type ApiError, applicationError, isSuccess } from '../error'
import { ExportFilter } from '../model/export'
import type { Cut, Page } from '../page'
import { cutRecord, type RecordShape, walkRecord } from './record'
import { skip } from './skip'
import { CLOSE_ARRAY, CLOSE_OBJECT, COMMA, colon, OPEN_ARRAY, OPEN_OBJECT, QUOTE, space, string, textOf } from './token'
import { broken, refuse, type Walk } from './walk'

/** An answer of an export, cut; `listed`: it named its records, be they none. */
export type Sheet = Pick<Page, 'rows' | 'filter' | 'unknown' | 'release'> & { readonly listed: boolean }

/** Walks a whole answer: `list` and `filter` in any order, all else passed over. Throws `Refused`. */
export const walkEnvelope = (walk: Walk, record: RecordShape): E.Either<ApiError, Sheet> => {
  const { bytes } = walk
  let rows: ReadonlyArray<Cut> | undefined
  const found: { filter?: unknown; status?: unknown } = {}
  let p = space(walk, 0)
  if (bytes[p] !== OPEN_OBJECT) return atEnd(walk, skip(walk, p, 0), E.left(unlike('$', 'expected an object')))
  p = space(walk, p + 1)
  for (let more = bytes[p] !== CLOSE_OBJECT; more; ) {
    if (bytes[p] !== QUOTE) throw broken(walk, p)
    const end = string(walk, p + 1)
    const name = textOf(walk, p, end)
    const from = colon(walk, end)
    if (name === walk.list && bytes[from] === OPEN_ARRAY) {
      if (rows !== undefined) throw refuse(`$.${name}`, 'there twice')
      const records: Cut[] = []
      p = walkRecords(walk, record, from, records)
      rows = records
    } else {
      p = skip(walk, from, 0)
      if (name === walk.list && bytes[from] !== 0x6e) throw refuse(`$.${name}`, 'expected an array')
      if (name === 'filter' || name === 'status') {
        if (found[name] !== undefined) throw refuse(`$.${name}`, 'there twice')
        found[name] = JSON.parse(bytes.toString('utf8', from, p))
      }
    }
    p = space(walk, p)
    more = bytes[p] === COMMA
    if (more) p = space(walk, p + 1)
    else if (bytes[p] !== CLOSE_OBJECT) throw broken(walk, p)
  }
  return atEnd(walk, p + 1, toSheet(walk, rows, found.filter ?? undefined, found.status ?? undefined))
}

const walkRecords = (walk: Walk, record: RecordShape, open: number, rows: Cut[]): number => {
  const { bytes } = walk
  let p = space(walk, open + 1)
  if (bytes[p] === CLOSE_ARRAY) return p + 1
  for (;;) {
    walk.index = rows.length
    const end = walkRecord(walk, record, p)
    rows.push(cutRecord(walk, record, p, end))
    p = space(walk, end)
    if (bytes[p] === CLOSE_ARRAY) return p + 1
    if (bytes[p] !== COMMA) throw broken(walk, p)
    p = space(walk, p + 1)
  }
}

const atEnd = <A>(walk: Walk, at: number, answer: A): A => {
  const end = space(walk, at)
  if (end < walk.bytes.length) throw broken(walk, end)
  return answer
}

const unlike = (path: string, message: string): ApiError => ({ _tag: 'Decode', path, message })

/** What an answer means (design.md): no records and no echo, or a status in their place, is never the end of the rows. */
const toSheet = (
  walk: Walk,
  rows: ReadonlyArray<Cut> | undefined,
  filter: unknown,
  status: unknown,
): E.Either<ApiError, Sheet> => {
  if (status !== undefined && (rows === undefined || (rows.length === 0 && !isSuccess(status))))
    return E.left(applicationError(status, 'no message'))
  if (rows === undefined && filter === undefined) return E.left(unlike('$', `neither ${walk.list} nor filter`))
  return pipe(
    ExportFilter.decode(filter ?? {}),
    E.bimap(
      ([error]) =>
        unlike(`$.filter${error?.context[1] === undefined ? '' : `.${error.context[1].key}`}`, 'of the wrong type'),
      (echo) => ({
        rows: rows ?? [],
        filter: echo,
        unknown: [...walk.unknown],
        listed: rows !== undefined,
        release: () => {
          walk.room?.release()
          walk.notes?.release()
        },
      }),
    ),
  )
}
