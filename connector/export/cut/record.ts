import type { RecordChange } from '../../cdk'
import type { CutRecord } from '../export-page'
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
} from './edit'
import { endRecordOffsets, type OffsetTable, startRecordOffsets } from './offsets'
import { type Shape, unknownAttributesKey } from './shape'
import {
  CLOSE_ARRAY,
  CLOSE_OBJECT,
  COMMA,
  decodeString,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
  skipColon,
  skipLiteral,
  skipNumber,
  skipSpace,
  skipString,
} from './tokens'
import { readObject } from './validate'

/**
 * A record that repeats keys, printed anew with the last of each, as JSON.parse reads it; latin1, as `Edit.text`.
 * Of an attribute under both of its names the declared one stays, unless it is null. Only for text already walked.
 */
export const removeDuplicateKeys = (walk: CutState, at: number, rename: Readonly<Record<string, string>>): string => {
  const [members] = readMembers(walk, at)
  for (const [from, to] of Object.entries(rename)) {
    const declared = members.get(to)
    if (declared !== undefined && members.has(from)) members.delete(declared === 'null' ? to : from)
  }
  return printMembers(members)
}

type PrintedMembers = Map<string, string>

const printMembers = (members: PrintedMembers): string =>
  `{${[...members].map(([key, text]) => `${Buffer.from(JSON.stringify(key)).toString('latin1')}:${text}`).join(',')}}`

const readMembers = (walk: CutState, at: number): readonly [PrintedMembers, number] => {
  const members: PrintedMembers = new Map()
  let p = skipSpace(walk, at + 1)
  while (walk.bytes[p] !== CLOSE_OBJECT) {
    const end = skipString(walk, p + 1)
    const [text, next] = printValueAt(walk, skipColon(walk, end))
    members.set(decodeString(walk, p, end), text)
    p = skipComma(walk, next)
  }
  return [members, p + 1]
}

const printValueAt = (walk: CutState, at: number): readonly [string, number] => {
  switch (walk.bytes[at]) {
    case OPEN_OBJECT: {
      const [members, end] = readMembers(walk, at)
      return [printMembers(members), end]
    }
    case OPEN_ARRAY: {
      const texts: string[] = []
      let p = skipSpace(walk, at + 1)
      while (walk.bytes[p] !== CLOSE_ARRAY) {
        const [text, next] = printValueAt(walk, p)
        texts.push(text)
        p = skipComma(walk, next)
      }
      return [`[${texts.join(',')}]`, p + 1]
    }
    case QUOTE:
      return readSpan(walk, at, skipString(walk, at + 1))
    case 0x66:
    case 0x6e:
    case 0x74:
      return readSpan(walk, at, skipLiteral(walk, at))
    default:
      return readSpan(walk, at, skipNumber(walk, at))
  }
}

const readSpan = ({ bytes }: CutState, from: number, to: number): readonly [string, number] => [
  bytes.toString('latin1', from, to),
  to,
]

const skipComma = (walk: CutState, at: number): number => {
  const p = skipSpace(walk, at)
  return walk.bytes[p] === COMMA ? skipSpace(walk, p + 1) : p
}

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
