import type { Change } from '../../cdk/message'
import type { Cut } from '../page'
import { distinct } from './distinct'
import { type Shape, undeclaredAttributes } from './shape'
import { OPEN_OBJECT } from './token'
import { object } from './value'
import { nameOf, Refused, refuse, render, type Walk, walkOf } from './walk'

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
  walk.repeated = false
  walk.lines = false
  if (walk.bytes[at] !== OPEN_OBJECT) throw refuse(nameOf(walk), 'expected an object')
  return object(walk, shape, at + 1)
}

/** The record just walked, as it leaves. */
export const cutRecord = (walk: Walk, record: RecordShape, from: number, to: number): Cut => {
  const { bytes } = walk
  if (walk.repeated) {
    const { id, modifiedTime, json, changes } = anew(walk, record, from)
    return new Cutting(id, modifiedTime, bytes, from, to, json, changes)
  }
  const json = leaving(walk, from, to)
  if ((json?.length ?? to - from) > maxRecordBytes)
    throw new Refused({
      _tag: 'Decode',
      path: nameOf(walk),
      message: `the record ${walk.id} is ${json?.length ?? to - from} bytes long, more than the ${maxRecordBytes} that any destination takes`,
      remedy: 'leave its largest attribute out with privacy.drop',
    })
  const { id, modifiedTime, changes } = walk
  return new Cutting(id, modifiedTime, bytes, from, to, json, changes.length === 0 ? undefined : changes)
}

const anew = (walk: Walk, record: RecordShape, from: number): Cut => {
  const bytes = Buffer.from(distinct(walk, from, record.rename), 'latin1')
  const again = walkOf(bytes, walk, walk.serial, walk.unknown)
  again.index = walk.index
  walkRecord(again, record, 0)
  walk.serial = again.serial
  again.repeated = false
  return cutRecord(again, record, 0, bytes.length)
}

/** A record among the bytes of its page. A view of them is an object larger than all else of it, so that it is made when it is asked for. */
class Cutting implements Cut {
  declare readonly changes?: ReadonlyArray<Change>

  constructor(
    readonly id: string,
    readonly modifiedTime: number,
    private readonly page: Buffer,
    private readonly from: number,
    private readonly to: number,
    private readonly anew: Uint8Array | undefined,
    changes: ReadonlyArray<Change> | undefined,
  ) {
    if (changes !== undefined) this.changes = changes
  }

  get raw(): Uint8Array {
    return this.page.subarray(this.from, this.to)
  }

  get json(): Uint8Array {
    return this.anew ?? this.raw
  }
}

/** The record's text where it does not leave as it came. */
const leaving = (walk: Walk, from: number, to: number): Buffer | undefined => {
  if (walk.extra.length > 0)
    walk.edits.push({ from: to - 1, to: to - 1, text: `,"${undeclaredAttributes}":{${walk.extra.join(',')}}` })
  if (walk.edits.length === 0 && !walk.lines) return undefined
  const json = render(walk, from, to, 0, walk.room)
  return walk.lines ? Buffer.from(json.toString('latin1').replace(/[\n\r][\t\n\r ]*/g, ''), 'latin1') : json
}
