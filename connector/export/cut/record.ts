import type { RecordChange, Row } from '../../cdk'
import {
  CLOSE_ARRAY,
  createScanner,
  decodeString,
  firstElement,
  firstMember,
  type JsonScanner,
  nextElement,
  nextMember,
  OPEN_ARRAY,
  OPEN_OBJECT,
  QUOTE,
  skipColon,
  skipString,
  skipValue,
} from '../../cdk/json/scanner'
import { CutError, type CutState, createCutError, createCutState, recordPathOf, reportAlteration } from './cut-state'
import { addEdit, clearEdits, renderedLength, renderSpan, renderSpanInto } from './edit'
import {
  endRecordOffsets,
  type OffsetTable,
  type RecordOffsets,
  removeRecordOffsets,
  startRecordOffsets,
} from './offsets'
import { type Shape, unknownAttributesKey } from './shape'
import { readObject } from './validate'

/** No consumer accepts a longer record: the platforms take lines of 20 MB. */
const maxRecordBytes = 20_000_000

/** A record of an export page: its key and version, its text, and the offsets of its fields in that text. */
export type CutRecord = Row &
  RecordOffsets & {
    /** The digits of the id, exactly as they came. */
    readonly id: string
    /** Milliseconds since 1970. */
    readonly modifiedTime: number
    /** The text as received. `json` is the text as sent: the same bytes if nothing had to change. */
    readonly raw: Uint8Array
  }

export type RecordShape = {
  readonly shape: Shape
  readonly aliases: Readonly<Record<string, string>>
}

/** Reads the record at `at` into the draft, the edits and the offsets of the page. Returns the position after it. */
export const readRecord = (state: CutState, { shape }: RecordShape, at: number): number => {
  const { scanner, edits, offsets, draft } = state
  clearEdits(edits, at)
  if (draft.changes.length > 0) draft.changes = []
  if (draft.collectedMembers.length > 0) draft.collectedMembers = []
  draft.hasCollectedReplacement = false
  draft.hasDuplicateKeys = false
  draft.hasLineBreaks = false
  if (scanner.bytes[at] !== OPEN_OBJECT) throw createCutError(recordPathOf(state), 'expected an object')
  if (offsets !== undefined) startRecordOffsets(offsets)
  const end = readObject(state, shape, at)
  if (offsets !== undefined) endRecordOffsets(offsets)
  if (draft.hasCollectedReplacement) reportAlteration(state, unknownAttributesKey)
  return end
}

/** The record just read, as it is sent. */
export const toCutRecord = (state: CutState, record: RecordShape, from: number, to: number): CutRecord => {
  const { bytes } = state.scanner
  const { id, modifiedTime, changes, hasDuplicateKeys, hasLineBreaks } = state.draft
  const input = { bytes, from, to }
  if (hasDuplicateKeys) {
    const { text, cutShort } = printDistinctKeys(bytes, from, record)
    return recutRecord(state, record, input, Buffer.from(text, 'latin1'), cutShort)
  }
  if (hasLineBreaks) return recutRecord(state, record, input, removeLineBreaks(bytes.toString('latin1', from, to)), [])
  const output = renderRecord(state, input)
  const length = output.to - output.from
  if (length > maxRecordBytes)
    throw new CutError({
      _tag: 'Decode',
      path: recordPathOf(state),
      message: `the record ${id} is ${length} bytes long, more than the ${maxRecordBytes} that any destination takes`,
      remedy: 'leave its largest attribute out with privacy.drop',
    })
  return new PageRecord(id, modifiedTime, input, output, changes.length === 0 ? undefined : changes, state.offsets)
}

/**
 * Cuts a record from another text than the one received; both have the same content, except for the attributes in
 * `cutShort`.
 */
const recutRecord = (
  state: CutState,
  record: RecordShape,
  input: ByteSpan,
  bytes: Buffer,
  cutShort: ReadonlyArray<string>,
): CutRecord => {
  if (state.offsets !== undefined) removeRecordOffsets(state.offsets)
  const again = createCutState(bytes, state.options, state.table, state.undeclaredPaths, undefined, state.offsets)
  again.recordIndex = state.recordIndex
  readRecord(again, record, 0)
  again.draft.hasDuplicateKeys = false
  for (const field of cutShort) reportAlteration(again, field)
  const { id, modifiedTime, json, changes } = toCutRecord(again, record, 0, bytes.length)
  return new PageRecord(id, modifiedTime, input, wholeSpan(json), changes, state.offsets)
}

type ByteSpan = { readonly bytes: Buffer; readonly from: number; readonly to: number }

const wholeSpan = (json: Uint8Array): ByteSpan => ({
  bytes: Buffer.from(json.buffer, json.byteOffset, json.byteLength),
  from: 0,
  to: json.byteLength,
})

/**
 * A record among the bytes of its page. A view takes more memory than all other data of a record, and pages wait in
 * memory, so views are created on demand.
 */
class PageRecord implements CutRecord {
  declare readonly changes?: ReadonlyArray<RecordChange>
  private readonly inputBytes: Buffer
  private readonly inputFrom: number
  private readonly inputTo: number
  private readonly outputBytes: Buffer
  private readonly outputFrom: number
  private readonly outputTo: number
  readonly offsets: OffsetTable | undefined
  readonly offsetsStart: number

  constructor(
    readonly id: string,
    readonly modifiedTime: number,
    input: ByteSpan,
    output: ByteSpan,
    changes: ReadonlyArray<RecordChange> | undefined,
    offsets: OffsetTable | undefined,
  ) {
    this.inputBytes = input.bytes
    this.inputFrom = input.from
    this.inputTo = input.to
    this.outputBytes = output.bytes
    this.outputFrom = output.from
    this.outputTo = output.to
    this.offsets = offsets
    this.offsetsStart = offsets === undefined ? 0 : offsets.recordStart
    if (changes !== undefined) this.changes = changes
  }

  get raw(): Uint8Array {
    return this.inputBytes.subarray(this.inputFrom, this.inputTo)
  }

  get json(): Uint8Array {
    return this.outputBytes.subarray(this.outputFrom, this.outputTo)
  }
}

/** The text of a record as sent: the received text, or one written into the output buffer. */
const renderRecord = ({ edits, draft, output }: CutState, input: ByteSpan): ByteSpan => {
  const { bytes, from, to } = input
  if (draft.collectedMembers.length > 0)
    addEdit(edits, to - 1, to - 1, `,"${unknownAttributesKey}":{${draft.collectedMembers.join(',')}}`)
  if (edits.length === 0) return input
  if (output === undefined) return wholeSpan(renderSpan(edits, bytes, from, to))
  const start = output.reserve(renderedLength(edits, from, to))
  const end = renderSpanInto(edits, bytes, from, to, output.bytes(), start)
  return { bytes: output.bytes(), from: start, to: end }
}

const removeLineBreaks = (json: string): Buffer => Buffer.from(json.replace(/[\n\r][\t\n\r ]*/g, ''), 'latin1')

/**
 * Prints the record at `at` again, keeping only the last of each repeated key, as JSON.parse does (latin1). An
 * attribute that arrives under both of its names gets the elements of both lists; `cutShort` names those that lack
 * some. The text must be JSON.
 */
const printDistinctKeys = (
  bytes: Buffer,
  at: number,
  { shape, aliases }: RecordShape,
): { readonly text: string; readonly cutShort: ReadonlyArray<string> } => {
  const [members] = readDistinctMembers(createScanner(bytes), at)
  const cutShort: string[] = []
  for (const [from, to] of Object.entries(aliases)) {
    const [declared, other] = [members.get(to), members.get(from)]
    if (declared === undefined || other === undefined) continue
    const { text, isWhole } = joinLists(declared, other)
    members.set(to, text)
    members.delete(from)
    if (!isWhole && shape.attributes.get(to)?.action !== 'drop') cutShort.push(to)
  }
  return { text: printMembers(members), cutShort }
}

/**
 * Joins two printed values of one attribute into one list. Drops elements of the other that the first has or that are
 * no objects.
 */
const joinLists = (first: string, other: string): { readonly text: string; readonly isWhole: boolean } => {
  const [own, more] = [readElements(first), readElements(other)]
  if (own === undefined || more === undefined) {
    const isWhole = first === 'null' || other === 'null' || first === other
    return { text: first === 'null' || (own === undefined && more !== undefined) ? other : first, isWhole }
  }
  const known = new Set(own.map(sortMembers))
  const added = more.filter((element) => !known.has(sortMembers(element)))
  const objects = added.filter((element) => element.startsWith('{'))
  return { text: `[${[...own, ...objects].join(',')}]`, isWhole: objects.length === added.length }
}

/** The printed elements of a printed list; undefined if it is not a list. */
const readElements = (text: string): ReadonlyArray<string> | undefined => {
  const scanner = createScanner(Buffer.from(text, 'latin1'))
  if (scanner.bytes[0] !== OPEN_ARRAY) return undefined
  const elements: string[] = []
  for (let p = firstElement(scanner, 0); scanner.bytes[p] !== CLOSE_ARRAY; ) {
    const end = skipValue(scanner, p)
    elements.push(text.slice(p, end))
    p = nextElement(scanner, end)
  }
  return elements
}

/** A printed value with sorted members and without needless escapes, so that equal values are equal texts. */
const sortMembers = (text: string): string => printDistinctValue(createScanner(Buffer.from(text, 'latin1')), 0, true)[0]

type PrintedMembers = Map<string, string>

const printMembers = (members: PrintedMembers): string =>
  `{${[...members].map(([key, text]) => `${Buffer.from(JSON.stringify(key)).toString('latin1')}:${text}`).join(',')}}`

/** The printed members of the object at `open`, and the position after it. */
const readDistinctMembers = (
  scanner: JsonScanner,
  open: number,
  isSorted = false,
): readonly [PrintedMembers, number] => {
  const members: PrintedMembers = new Map()
  let key = firstMember(scanner, open)
  while (scanner.bytes[key] === QUOTE) {
    const keyEnd = skipString(scanner, key + 1)
    const [text, end] = printDistinctValue(scanner, skipColon(scanner, keyEnd), isSorted)
    members.set(decodeString(scanner, key, keyEnd), text)
    key = nextMember(scanner, end)
  }
  return [members, key + 1]
}

const printDistinctValue = (scanner: JsonScanner, at: number, isSorted = false): readonly [string, number] => {
  const { bytes } = scanner
  if (bytes[at] === OPEN_OBJECT) {
    const [members, end] = readDistinctMembers(scanner, at, isSorted)
    return [printMembers(isSorted ? new Map([...members].sort(([a], [b]) => (a < b ? -1 : 1))) : members), end]
  }
  if (bytes[at] === OPEN_ARRAY) {
    const texts: string[] = []
    let p = firstElement(scanner, at)
    while (bytes[p] !== CLOSE_ARRAY) {
      const [text, end] = printDistinctValue(scanner, p, isSorted)
      texts.push(text)
      p = nextElement(scanner, end)
    }
    return [`[${texts.join(',')}]`, p + 1]
  }
  const end = skipValue(scanner, at)
  const isText = isSorted && bytes[at] === QUOTE
  return [isText ? JSON.stringify(decodeString(scanner, at, end)) : bytes.toString('latin1', at, end), end]
}
