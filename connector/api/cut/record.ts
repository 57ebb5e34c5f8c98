import type { RecordChange } from '../../cdk/message'
import type { CutRecord } from '../page'
import { removeDuplicateKeys } from './distinct'
import { endRecordOffsets, type OffsetTable, startRecordOffsets } from './notes'
import { type Shape, unknownAttributesKey } from './shape'
import { OPEN_OBJECT } from './token'
import { readObject } from './value'
import {
  addEdit,
  CutError,
  type CutState,
  createCutError,
  createCutState,
  recordPathOf,
  renderedLength,
  renderSpan,
  renderSpanInto,
} from './walk'

/** A longer record fits no consumer: the platforms take lines of 20 MB. */
export const maxRecordBytes = 20_000_000

export type RecordShape = {
  readonly shape: Shape
  readonly aliases: Readonly<Record<string, string>>
}

/** The position after the record at `at`. */
export const readRecord = (walk: CutState, { shape }: RecordShape, at: number): number => {
  if (walk.edits.length > 0) walk.edits = []
  if (walk.changes.length > 0) walk.changes = []
  if (walk.collectedMembers.length > 0) walk.collectedMembers = []
  walk.outputShift = -at
  walk.hasDuplicateKeys = false
  walk.hasLineBreaks = false
  if (walk.bytes[at] !== OPEN_OBJECT) throw createCutError(recordPathOf(walk), 'expected an object')
  if (walk.offsets !== undefined) startRecordOffsets(walk.offsets)
  const end = readObject(walk, shape, at + 1)
  if (walk.offsets !== undefined) endRecordOffsets(walk.offsets)
  return end
}

/** The record just walked, as it leaves. */
export const toCutRecord = (walk: CutState, record: RecordShape, from: number, to: number): CutRecord => {
  const came = { bytes: walk.bytes, from, to }
  if (walk.hasDuplicateKeys)
    return recutRecord(walk, record, came, Buffer.from(removeDuplicateKeys(walk, from, record.aliases), 'latin1'))
  if (walk.hasLineBreaks)
    return recutRecord(walk, record, came, removeLineBreaks(walk.bytes.toString('latin1', from, to)))
  const leaves = writeOutput(walk, came)
  const length = leaves.to - leaves.from
  if (length > maxRecordBytes)
    throw new CutError({
      _tag: 'Decode',
      path: recordPathOf(walk),
      message: `the record ${walk.id} is ${length} bytes long, more than the ${maxRecordBytes} that any destination takes`,
      remedy: 'leave its largest attribute out with privacy.drop',
    })
  const { id, modifiedTime, changes, offsets } = walk
  return new PageRecord(id, modifiedTime, came, leaves, changes.length === 0 ? undefined : changes, offsets)
}

/** A record that is not cut from the text it came in, but from another that says the same. */
const recutRecord = (walk: CutState, record: RecordShape, came: ByteSpan, bytes: Buffer): CutRecord => {
  const { offsets } = walk
  if (offsets !== undefined) offsets.length = offsets.recordStart
  const again = createCutState(bytes, walk, walk.objectSerial, walk.undeclaredPaths, undefined, offsets)
  again.recordIndex = walk.recordIndex
  readRecord(again, record, 0)
  walk.objectSerial = again.objectSerial
  again.hasDuplicateKeys = false
  const { id, modifiedTime, json, changes } = toCutRecord(again, record, 0, bytes.length)
  return new PageRecord(id, modifiedTime, came, wholeSpan(json), changes, offsets)
}

type ByteSpan = { readonly bytes: Buffer; readonly from: number; readonly to: number }

const wholeSpan = (json: Uint8Array): ByteSpan => ({
  bytes: Buffer.from(json.buffer, json.byteOffset, json.byteLength),
  from: 0,
  to: json.byteLength,
})

/**
 * A record among the bytes of its page. A view of them is larger than all else of it, and pages wait to be looked at: so
 * views are made as they are asked for.
 */
class PageRecord implements CutRecord {
  declare readonly changes?: ReadonlyArray<RecordChange>
  private readonly page: Buffer
  private readonly from: number
  private readonly to: number
  private readonly out: Buffer
  private readonly start: number
  private readonly end: number
  readonly offsets: OffsetTable | undefined
  readonly offsetsStart: number

  constructor(
    readonly id: string,
    readonly modifiedTime: number,
    came: ByteSpan,
    leaves: ByteSpan,
    changes: ReadonlyArray<RecordChange> | undefined,
    offsets: OffsetTable | undefined,
  ) {
    this.page = came.bytes
    this.from = came.from
    this.to = came.to
    this.out = leaves.bytes
    this.start = leaves.from
    this.end = leaves.to
    this.offsets = offsets
    this.offsetsStart = offsets === undefined ? 0 : offsets.recordStart
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
const writeOutput = (walk: CutState, came: ByteSpan): ByteSpan => {
  const { from, to } = came
  if (walk.collectedMembers.length > 0)
    addEdit(walk, to - 1, to - 1, `,"${unknownAttributesKey}":{${walk.collectedMembers.join(',')}}`)
  if (walk.edits.length === 0) return came
  const { output } = walk
  if (output === undefined) return wholeSpan(renderSpan(walk, from, to, 0))
  const length = renderedLength(walk, from, to, 0)
  const start = output.reserve(length)
  renderSpanInto(walk, from, to, 0, output.bytes(), start)
  return { bytes: output.bytes(), from: start, to: start + length }
}

const removeLineBreaks = (json: string): Buffer => Buffer.from(json.replace(/[\n\r][\t\n\r ]*/g, ''), 'latin1')
