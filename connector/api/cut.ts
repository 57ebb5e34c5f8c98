import { isUtf8 } from 'node:buffer'
import * as E from 'fp-ts/Either'
import type * as t from 'io-ts'
import { compileShape } from './cut/compile'
import { type CutPage, readEnvelope } from './cut/envelope'
import { createOffsetTable } from './cut/notes'
import { createOutputBuffer } from './cut/room'
import type { FieldTree, PrivacyAction } from './cut/shape'
import { CutError, createCutState } from './cut/walk'
import type { ApiError } from './error'
import { createBufferPool } from './pool'

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

export type { CutPage, PrivacyAction }

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
