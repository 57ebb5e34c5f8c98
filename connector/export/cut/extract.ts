import type { Row } from '../../cdk'
import {
  createScanner,
  decodeString,
  firstMember,
  type JsonScanner,
  nextMember,
  OPEN_OBJECT,
  QUOTE,
  skipColon,
  skipString,
  skipValue,
} from '../../cdk/json/scanner'
import {
  addEdit,
  clearEdits,
  createEditList,
  type EditList,
  noRun,
  removeLastRun,
  removeRun,
  renderSpan,
  renderSpanInto,
  startRun,
} from './edit'
import type { FieldOffset } from './offsets'

/** A field is present and not null. */
export const hasField = <P extends FieldOffset>(json: Uint8Array, field: P | undefined): field is P =>
  field !== undefined && json[field.from] !== 0x6e

/** The JSON text of a field, one byte a character (latin1). */
export const rawFieldText = (json: Uint8Array, { from, to }: FieldOffset): string =>
  asBuffer(json).toString('latin1', from, to)

/** A field as text: a string decoded, any other value as its JSON text. */
export const fieldText = (json: Uint8Array, { from, to }: FieldOffset): string => {
  const text = asBuffer(json).toString('utf8', from, to)
  if (json[from] !== QUOTE) return text
  return text.includes('\\') ? JSON.parse(text) : text.slice(1, -1)
}

const asBuffer = (json: Uint8Array): Buffer =>
  Buffer.isBuffer(json) ? json : Buffer.from(json.buffer, json.byteOffset, json.byteLength)

/**
 * Makes an object inside a record a row: drops its `excluded` members and appends the members `added` (their JSON text
 * without braces, latin1).
 */
type ObjectExtractor = (
  json: Uint8Array,
  object: FieldOffset,
  excluded: ReadonlyArray<FieldOffset | undefined>,
  added: string,
) => Row

/** Rows are written one after the other into chunks, since a separate buffer costs more than most rows. */
const chunkSize = 1 << 16

/** An extractor with its own chunks. A chunk is never overwritten, so rows stay valid. */
export const createExtractor = (): ObjectExtractor => {
  const edits = createEditList()
  let scanner = createScanner(Buffer.alloc(0))
  let chunk = Buffer.alloc(0)
  let used = 0
  return (json, object, excluded, added) => {
    if (scanner.bytes !== json) scanner = createScanner(json)
    const { bytes } = scanner
    const { from, to } = object
    clearEdits(edits, from)
    if (bytes[from] === OPEN_OBJECT) editObject(edits, scanner, object, excluded, added)
    else addEdit(edits, from, to, `{${added}}`)
    // At most a comma and the braces are added: cheaper than summing the edits.
    const most = to - from + added.length + 3
    if (used + most > chunk.length) {
      chunk = Buffer.allocUnsafeSlow(Math.max(chunkSize, most))
      used = 0
    }
    const start = used
    used = renderSpanInto(edits, bytes, from, to, chunk, start)
    return new ExtractedRow(chunk, start, used)
  }
}

/** A view takes more memory than all other data of a row, so it is created on demand. */
class ExtractedRow implements Row {
  declare private readonly chunk: Buffer
  declare private readonly from: number
  declare private readonly to: number

  constructor(chunk: Buffer, from: number, to: number) {
    this.chunk = chunk
    this.from = from
    this.to = to
  }

  get json(): Uint8Array {
    return this.chunk.subarray(this.from, this.to)
  }
}

const editObject = (
  edits: EditList,
  scanner: JsonScanner,
  object: FieldOffset,
  excluded: ReadonlyArray<FieldOffset | undefined>,
  added: string,
): void => {
  const { bytes } = scanner
  const close = object.to - 1
  const first = firstMember(scanner, object.from)
  let run = noRun
  // The first key after the members left out so far, or the brace.
  let at = first
  for (let next = nextExcluded(excluded, at); next !== undefined; next = nextExcluded(excluded, at)) {
    if (run !== noRun && next.key > at) {
      removeRun(edits, run, at)
      run = noRun
    }
    run = startRun(run, object.from, next.key === first ? -1 : first, next.key)
    at = nextMember(scanner, next.to)
  }
  if (run !== noRun && at < close) {
    removeRun(edits, run, at)
    run = noRun
  }
  // The added members replace the last run after the comma before it, or follow the last member.
  const isFirst = first === close || run !== noRun
  addEdit(edits, skipSpaceBack(bytes, run === noRun ? close : run), close, isFirst ? added : `,${added}`)
}

/** The first of a few fields that does not stand before `at`. */
const nextExcluded = (fields: ReadonlyArray<FieldOffset | undefined>, at: number): FieldOffset | undefined => {
  let first: FieldOffset | undefined
  for (const field of fields)
    if (field !== undefined && field.key >= at && (first === undefined || field.key < first.key)) first = field
  return first
}

/** The start of the white space that ends at a position. A record holds no line breaks. */
const skipSpaceBack = (bytes: Buffer, at: number): number => {
  let p = at
  while (bytes[p - 1] === 0x20 || bytes[p - 1] === 0x09) p--
  return p
}

/**
 * Keeps only the wanted top-level attributes of a record, unchanged. Expects the text of an object as a cutter outputs
 * it.
 */
export const pickRecordAttributes = (wanted: ReadonlySet<string>): ((json: Uint8Array) => Uint8Array) => {
  const edits = createEditList()
  return (json) => {
    const scanner = createScanner(json)
    const { bytes } = scanner
    clearEdits(edits, 0)
    let run = noRun
    let keptEnd = -1
    let end = 1
    let key = firstMember(scanner, 0)
    while (bytes[key] === QUOTE) {
      const keyEnd = skipString(scanner, key + 1)
      end = skipValue(scanner, skipColon(scanner, keyEnd))
      if (wanted.has(decodeString(scanner, key, keyEnd))) {
        if (run !== noRun) removeRun(edits, run, key)
        run = noRun
        keptEnd = end
      } else run = startRun(run, 0, keptEnd, key)
      key = nextMember(scanner, end)
    }
    if (run !== noRun) removeLastRun(edits, run, keptEnd, end, key)
    return renderSpan(edits, bytes, 0, bytes.length)
  }
}
