import type { ApiError } from '../../api'
import type { RecordChange } from '../../cdk'
import { createScanner, type JsonScanner } from '../../cdk/json/scanner'
import { addEdit, createEditList, type EditList, type OutputBuffer } from './edit'
import type { OffsetTable } from './offsets'
import { type Attribute, joinPath, type Shape } from './shape'

/** What a cutter was told about the pages it cuts. */
export type PageOptions = {
  /** The name of the list of records in the envelope. */
  readonly list: string
  /** What happens to undeclared top-level attributes: `keep` collects them in `unknown_attributes`. */
  readonly undeclared: 'keep' | 'drop' | 'fail'
}

/** What has been seen of the values of one shape. */
export type PlaceState = {
  readonly shape: Shape
  /** The number of the last object that held it. */
  lastObject: number
  /** Of an array: the index of the element under way. */
  elementIndex: number
  /** Of an object: its keys, by name, as far as they have come, and the one that came first in the last object. */
  readonly keys: Map<string, KeyState>
  expectedFirst: KeyState | undefined
}

/** A key that has come. An attribute that comes under two names has two of these and one place. */
export type KeyState = Attribute & {
  readonly place: PlaceState
  /** Its value is read and nothing else: no other key, no hash, no offsets. */
  readonly isPlain: boolean
  /** The path under which it is reported, if it is not declared. */
  readonly undeclaredPath: string | undefined
  /** The key that came after it the last time. */
  expectedNext: KeyState | undefined
}

/** The places that have come, by the index of their shape. One call at a time uses a table. */
export type PlaceTable = {
  readonly places: PlaceState[]
  /** How many declared objects have been read, so that a place can tell whether this object has held it before. */
  objectCount: number
}

export const createPlaceTable = (): PlaceTable => ({ places: [], objectCount: 0 })

/** What is known of the record under way. */
type RecordDraft = {
  /** The digits of its primary key. */
  id: string
  /** Its cursor, milliseconds since 1970. */
  modifiedTime: number
  changes: RecordChange[]
  /** Undeclared top-level attributes, as the text of members (latin1). */
  collectedMembers: string[]
  /** One of them holds a replacement character. */
  hasCollectedReplacement: boolean
  /** It may hold a key twice, so it is printed again. */
  hasDuplicateKeys: boolean
  /** It spans lines: it is cut again without them. */
  hasLineBreaks: boolean
}

/**
 * All that one call of a cutter knows. It is written to as the page is read: a page holds a hundred thousand values.
 */
export type CutState = {
  readonly options: PageOptions
  readonly scanner: JsonScanner
  /** The edits of the record under way. */
  readonly edits: EditList
  /** Where records are rendered; undefined: each in a buffer of its own. */
  readonly output: OutputBuffer | undefined
  /** Where the offsets of members go; undefined: none were asked for. */
  readonly offsets: OffsetTable | undefined
  /** Paths of undeclared attributes, over the whole page. */
  readonly undeclaredPaths: Set<string>
  readonly table: PlaceTable
  readonly draft: RecordDraft
  /** The index of the record under way in its list. */
  recordIndex: number
}

/** The state at the start of a text. */
export const createCutState = (
  bytes: Buffer,
  options: PageOptions,
  table: PlaceTable,
  undeclaredPaths: Set<string>,
  output: OutputBuffer | undefined,
  offsets: OffsetTable | undefined,
): CutState => {
  const edits = createEditList()
  const draft: RecordDraft = {
    id: '',
    modifiedTime: 0,
    changes: [],
    collectedMembers: [],
    hasCollectedReplacement: false,
    hasDuplicateKeys: false,
    hasLineBreaks: false,
  }
  const scanner = createScanner(bytes, {
    // UTF-8 cannot express half a surrogate pair: the replacement character leaves. The reader of the value tells it.
    onLoneSurrogate: (from, to) => addEdit(edits, from, to, '\\ufffd'),
    onDuplicateKey: () => {
      draft.hasDuplicateKeys = true
    },
    onLineBreak: () => {
      draft.hasLineBreaks = true
    },
  })
  return { options, scanner, edits, output, offsets, undeclaredPaths, table, draft, recordIndex: 0 }
}

/** The state of a declared place, made when it first comes. */
export const placeOf = ({ table }: CutState, shape: Shape): PlaceState => {
  const known = table.places[shape.index]
  if (known !== undefined) return known
  const place = createPlace(shape)
  table.places[shape.index] = place
  return place
}

/** Spelt out, so that all keys have one hidden class. */
export const createKey = (
  { shape, keyBytes, keyWords, lastKeyWord, outputKey, action }: Attribute,
  place: PlaceState,
  undeclaredPath: string | undefined,
): KeyState => ({
  shape,
  keyBytes,
  keyWords,
  lastKeyWord,
  outputKey,
  action,
  place,
  isPlain: outputKey === undefined && action === undefined && shape.fieldIndex < 0,
  undeclaredPath,
  expectedNext: undefined,
})

export const createPlace = (shape: Shape): PlaceState => ({
  shape,
  lastObject: 0,
  elementIndex: 0,
  keys: new Map(),
  expectedFirst: undefined,
})

/** The path of the value under way, with the indexes of its elements: `contents.0.id`. */
export const indexedPathOf = (state: CutState, shape: Shape): string =>
  joinPath(shape, (array) => [String(placeOf(state, array).elementIndex)])

const loneSurrogates = /\p{Surrogate}/gu

/** Says that a text in the value of a shape leaves with U+FFFD in place of half a surrogate pair. */
export const reportReplacement = (state: CutState, shape: Shape): void =>
  reportAlteration(state, indexedPathOf(state, shape).replace(loneSurrogates, '\ufffd'))

/** Says that the value of an attribute leaves, but not as it came. */
export const reportAlteration = ({ draft: { changes } }: CutState, field: string): void => {
  if (changes[changes.length - 1]?.field !== field)
    changes.push({ field, change: 'TRUNCATED', reason: 'SOURCE_SERIALIZATION_ERROR' })
}

/** The name of the record under way in messages. */
export const recordPathOf = ({ options, recordIndex }: CutState): string => `$.${options.list}[${recordIndex}]`

/**
 * Ends the cutting of a page. It is thrown inside the cutter alone, where an `Either` per value would cost more than
 * the value.
 */
export class CutError extends Error {
  constructor(readonly error: ApiError) {
    super(error._tag)
  }
}

export const createCutError = (path: string, message: string): CutError =>
  new CutError({ _tag: 'Decode', path, message })
