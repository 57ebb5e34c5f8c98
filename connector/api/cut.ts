import { isUtf8 } from 'node:buffer'
import * as E from 'fp-ts/Either'
import type * as t from 'io-ts'
import { toShape } from './cut/compile'
import { type Sheet, walkEnvelope } from './cut/envelope'
import { notesIn } from './cut/notes'
import { roomIn } from './cut/room'
import type { Action, Wanted } from './cut/shape'
import { Refused, walkOf } from './cut/walk'
import type { ApiError } from './error'
import { pool } from './pool'

export type CutOptions = {
  /** What a record must be; its key and cursor are its top-level attributes of those names. */
  readonly codec: t.Any
  /** Where records stand in the envelope. */
  readonly list: string
  readonly key: string
  readonly cursor: string
  /** Top-level attributes that arrive under another name: from that name to the declared one. */
  readonly rename?: Readonly<Record<string, string>>
  /** What becomes of undeclared top-level attributes: `keep` collects them in `unknown_attributes`. */
  readonly undeclared: 'keep' | 'drop' | 'fail'
  /** Privacy, by path, such as `contents.response`; arrays are walked. A hash gets a string decoded, all else as text. */
  readonly actions?: Readonly<Record<string, Action>>
  /** The members of a record to note the places of, for `outliner`. */
  readonly wanted?: Wanted | undefined
}

export type { Action, Sheet }

/** Cuts the bytes of an answer into records. */
export type Cutter = (body: Uint8Array) => E.Either<ApiError, Sheet>

/**
 * Compiles a codec into a cutter: one walk over the bytes, strict as JSON.parse, that checks every declared attribute.
 * One of the wrong type leaves as null with its change; a broken envelope, key or cursor is a `Left`.
 */
export const cutter = (options: CutOptions): Cutter => {
  const rename = options.rename ?? {}
  const record = { shape: toShape({ ...options, rename, actions: options.actions ?? {} }), rename }
  const buffers = pool()
  const noted = pool()
  let serial = 0
  return (body) => {
    const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength)
    if (!isUtf8(bytes)) return E.left({ _tag: 'Decode', path: '$', message: 'not UTF-8' })
    // Somewhat more than the notes of a page of reviews take.
    const notes = options.wanted === undefined ? undefined : notesIn(noted, (bytes.length * 3) >> 3)
    const walk = walkOf(bytes, options, serial, new Set(), roomIn(buffers, bytes.length), notes)
    try {
      return walkEnvelope(walk, record)
    } catch (error) {
      if (error instanceof Refused) return E.left(error.error)
      throw error
    } finally {
      serial = walk.serial
    }
  }
}
