import type { Change } from '../../cdk/message'
import type { Cut } from '../page'
import { distinct } from './distinct'
import { type Notes, noteRecord, noteRecordEnd } from './notes'
import { type Shape, undeclaredAttributes } from './shape'
import { OPEN_OBJECT } from './token'
import { object } from './value'
import { edit, lengthOf, nameOf, Refused, refuse, render, renderInto, type Walk, walkOf } from './walk'

/** A longer record fits no consumer: the platforms take lines of 20 MB. */
export const maxRecordBytes = 20_000_000

export type RecordShape = {
  readonly shape: Shape
  readonly rename: Readonly<Record<string, string>>
}

/** The position after the record at `at`. */
export const walkRecord = (walk: Walk, { shape }: RecordShape, at: number): number => {
  if (walk.edits.length > 0) walk.edits = []
  if (walk.changes.length > 0) walk.changes = []
  if (walk.extra.length > 0) walk.extra = []
  walk.shift = -at
  walk.repeated = false
  walk.lines = false
  if (walk.bytes[at] !== OPEN_OBJECT) throw refuse(nameOf(walk), 'expected an object')
  if (walk.notes !== undefined) noteRecord(walk.notes)
  const end = object(walk, shape, at + 1)
  if (walk.notes !== undefined) noteRecordEnd(walk.notes)
  return end
}

/** The record just walked, as it leaves. */
export const cutRecord = (walk: Walk, record: RecordShape, from: number, to: number): Cut => {
  const came = { bytes: walk.bytes, from, to }
  if (walk.repeated) return anew(walk, record, came, Buffer.from(distinct(walk, from, record.rename), 'latin1'))
  if (walk.lines) return anew(walk, record, came, onOneLine(walk.bytes.toString('latin1', from, to)))
  const leaves = leaving(walk, came)
  const length = leaves.to - leaves.from
  if (length > maxRecordBytes)
    throw new Refused({
      _tag: 'Decode',
      path: nameOf(walk),
      message: `the record ${walk.id} is ${length} bytes long, more than the ${maxRecordBytes} that any destination takes`,
      remedy: 'leave its largest attribute out with privacy.drop',
    })
  const { id, modifiedTime, changes, notes } = walk
  return new Cutting(id, modifiedTime, came, leaves, changes.length === 0 ? undefined : changes, notes)
}

/** A record that is not cut from the text it came in, but from another that says the same. */
const anew = (walk: Walk, record: RecordShape, came: Text, bytes: Buffer): Cut => {
  const { notes } = walk
  if (notes !== undefined) notes.length = notes.first
  const again = walkOf(bytes, walk, walk.serial, walk.unknown, undefined, notes)
  again.index = walk.index
  walkRecord(again, record, 0)
  walk.serial = again.serial
  again.repeated = false
  const { id, modifiedTime, json, changes } = cutRecord(again, record, 0, bytes.length)
  return new Cutting(id, modifiedTime, came, whole(json), changes, notes)
}

type Text = { readonly bytes: Buffer; readonly from: number; readonly to: number }

const whole = (json: Uint8Array): Text => ({
  bytes: Buffer.from(json.buffer, json.byteOffset, json.byteLength),
  from: 0,
  to: json.byteLength,
})

/**
 * A record among the bytes of its page. A view of them is larger than all else of it, and pages wait to be looked at: so
 * views are made as they are asked for.
 */
class Cutting implements Cut {
  declare readonly changes?: ReadonlyArray<Change>
  private readonly page: Buffer
  private readonly from: number
  private readonly to: number
  private readonly out: Buffer
  private readonly start: number
  private readonly end: number
  readonly notes: Notes | undefined
  readonly noted: number

  constructor(
    readonly id: string,
    readonly modifiedTime: number,
    came: Text,
    leaves: Text,
    changes: ReadonlyArray<Change> | undefined,
    notes: Notes | undefined,
  ) {
    this.page = came.bytes
    this.from = came.from
    this.to = came.to
    this.out = leaves.bytes
    this.start = leaves.from
    this.end = leaves.to
    this.notes = notes
    this.noted = notes === undefined ? 0 : notes.first
    if (changes !== undefined) this.changes = changes
  }

  get raw(): Uint8Array {
    return this.page.subarray(this.from, this.to)
  }

  get json(): Uint8Array {
    return this.out.subarray(this.start, this.end)
  }
}

/** The record's text as it leaves: the text it came in, or one written into the room for such. */
const leaving = (walk: Walk, came: Text): Text => {
  const { from, to } = came
  if (walk.extra.length > 0) edit(walk, to - 1, to - 1, `,"${undeclaredAttributes}":{${walk.extra.join(',')}}`)
  if (walk.edits.length === 0) return came
  const { room } = walk
  if (room === undefined) return whole(render(walk, from, to, 0))
  const length = lengthOf(walk, from, to, 0)
  const start = room.reserve(length)
  renderInto(walk, from, to, 0, room.bytes(), start)
  return { bytes: room.bytes(), from: start, to: start + length }
}

const onOneLine = (json: string): Buffer => Buffer.from(json.replace(/[\n\r][\t\n\r ]*/g, ''), 'latin1')
