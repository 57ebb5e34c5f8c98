import type { BufferPool } from '../pool'
import type { Shape } from './shape'
import type { CutState } from './walk'

/** Numbers a note takes: which member it is, where its key, its value and what follows that begin. */
export const offsetEntrySize = 4

/** Stands behind the notes of a record: nothing comes after it. */
export const endOfRecord = 0x7fffffff

/**
 * Where members of the records of a page stand, counted from the first byte of their record as it leaves. In order of
 * place, so that the notes of a member's own members follow its own. Numbers alone, since there are a hundred thousand.
 */
export type OffsetTable = {
  entries: Int32Array
  length: number
  /** Where the notes of the record under way begin. */
  recordStart: number
  /** Makes room for another note. */
  readonly grow: () => void
  /** Nobody looks at them any more. */
  readonly release: () => void
}

/** Notes in buffers of `pool`, at first with room for so many bytes of them. */
export const createOffsetTable = ({ acquire, release }: BufferPool, expected: number): OffsetTable => {
  let buffer = acquire(expected)
  const notes: OffsetTable = {
    entries: int32View(buffer),
    length: 0,
    recordStart: 0,
    grow: () => {
      const larger = acquire(buffer.length * 2)
      buffer.copy(larger)
      release(buffer)
      buffer = larger
      notes.entries = int32View(buffer)
    },
    release: () => {
      release(buffer)
      buffer = Buffer.alloc(0)
    },
  }
  return notes
}

const int32View = ({ buffer, byteOffset, length }: Buffer): Int32Array =>
  new Int32Array(buffer, byteOffset, Math.floor(length / (4 * offsetEntrySize)) * offsetEntrySize)

/** Notes a member that is wanted, by where its key stands as it leaves and its value as it came; answers the note. */
export const startFieldOffset = (
  { offsets, outputShift }: CutState,
  { fieldIndex }: Shape,
  key: number,
  from: number,
): number => (fieldIndex < 0 || offsets === undefined ? -1 : addEntry(offsets, fieldIndex, key, from + outputShift))

/** Notes where the value ends, as it came. */
export const endFieldOffset = ({ offsets, outputShift }: CutState, note: number, to: number): void => {
  if (note >= 0 && offsets !== undefined) offsets.entries[note + 3] = to + outputShift
}

const addEntry = (notes: OffsetTable, slot: number, key: number, from: number): number => {
  const at = notes.length
  if (at + offsetEntrySize > notes.entries.length) notes.grow()
  const { entries } = notes
  entries[at] = slot
  entries[at + 1] = key
  entries[at + 2] = from
  entries[at + 3] = from
  notes.length = at + offsetEntrySize
  return at
}

/** The record under way begins. */
export const startRecordOffsets = (notes: OffsetTable): void => {
  notes.recordStart = notes.length
}

/** The record under way has ended. */
export const endRecordOffsets = (notes: OffsetTable): void => {
  addEntry(notes, 0, endOfRecord, endOfRecord)
}

/** Takes back the notes of this record on what stands behind a place. */
export const removeOffsetsAfter = (notes: OffsetTable, place: number): void => {
  while (notes.length > notes.recordStart && (notes.entries[notes.length - 2] ?? 0) > place)
    notes.length -= offsetEntrySize
}
