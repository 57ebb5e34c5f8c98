import type { ApiError } from '../../api'
import type { RecordChange } from '../../cdk'
import { createScanner, type JsonScanner } from '../../cdk/json/scanner'
import { addEdit, createEditList, type EditList, type OutputBuffer } from './edit'
import type { OffsetTable } from './offsets'
import { type Attribute, joinPath, type Shape } from './shape'

/** The options of a cutter. */
export type PageOptions = {
  /** The name of the list of records in the envelope. */
  readonly list: string
  /** What happens to undeclared top-level attributes: `keep` collects them in `unknown_attributes`. */
  readonly undeclared: 'keep' | 'drop' | 'fail'
}

/** What has been seen so far of the values of one shape. */
export type PlaceState = {
  readonly shape: Shape
  /** The number of the last object that held it. */
  lastObject: number
  /** Of an array: the index of the element under way. */
  elementIndex: number
  /** For an object: its keys by name, as they have come so far, and the one that came first in the last object. */
  readonly keys: Map<string, KeyState>
  expectedFirst: KeyState | undefined
}

/** A key that has come. An attribute that arrives under two names has two of these and one place. */
export type KeyState = Attribute & {
  readonly place: PlaceState
  /** The value is only read: no other output key, no hash, no offsets. */
  readonly isPlain: boolean
  /** The path under which it is reported if it is undeclared. */
  readonly undeclaredPath: string | undefined
  /** The key that came after it the last time. */
  expectedNext: KeyState | undefined
}

/** The places that have come, by the index of their shape. Only one call at a time uses a table. */
export type PlaceTable = {
  readonly places: PlaceState[]
  /** How many declared objects have been read. Shows a place if this object has already held it. */
  objectCount: number
}

export const createPlaceTable = (): PlaceTable => ({ places: [], objectCount: 0 })

/** What is known of the current record. */
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
  /** It may contain a key twice, so it is printed again. */
  hasDuplicateKeys: boolean
  /** It spans lines, so it is cut again without line breaks. */
  hasLineBreaks: boolean
}

/** Everything that one call of a cutter knows. Changed in place, since a page holds a hundred thousand values. */
export type CutState = {
  readonly options: PageOptions
  readonly scanner: JsonScanner
  /** The edits of the current record. */
  readonly edits: EditList
  /** Where records are rendered; undefined: each in its own buffer. */
  readonly output: OutputBuffer | undefined
  /** Where the offsets of members are written; undefined if none were requested. */
  readonly offsets: OffsetTable | undefined
  /** Paths of undeclared attributes across the page. */
  readonly undeclaredPaths: Set<string>
  readonly table: PlaceTable
  readonly draft: RecordDraft
  /** The index of the current record in its list. */
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
    // UTF-8 cannot express half a surrogate pair, so U+FFFD is sent instead. The reader of the value reports it.
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

/** Written out so that all keys share one hidden class. */
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

/** The path of the current value, with the indexes of its elements: `contents.0.id`. */
export const indexedPathOf = (state: CutState, shape: Shape): string =>
  joinPath(shape, (array) => [String(placeOf(state, array).elementIndex)])

const loneSurrogates = /\p{Surrogate}/gu

/** Reports that a text is sent with U+FFFD instead of half a surrogate pair. */
export const reportReplacement = (state: CutState, shape: Shape): void =>
  reportAlteration(state, indexedPathOf(state, shape).replace(loneSurrogates, '\ufffd'))

/** Reports that the value of an attribute is sent in changed form. */
export const reportAlteration = ({ draft: { changes } }: CutState, field: string): void => {
  if (changes[changes.length - 1]?.field !== field)
    changes.push({ field, change: 'TRUNCATED', reason: 'SOURCE_SERIALIZATION_ERROR' })
}

/** The name of the current record in messages. */
export const recordPathOf = ({ options, recordIndex }: CutState): string => `$.${options.list}[${recordIndex}]`

/**
 * Ends the cutting of a page. Thrown only inside the cutter, where an `Either` per value would cost more than the
 * value.
 */
export class CutError extends Error {
  constructor(readonly error: ApiError) {
    super(error._tag)
  }
}

export const createCutError = (path: string, message: string): CutError =>
  new CutError({ _tag: 'Decode', path, message })
