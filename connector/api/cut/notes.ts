import type { Pool } from '../pool'
import type { Shape } from './shape'
import type { Walk } from './walk'

/** Numbers a note takes: which member it is, where its key, its value and what follows that begin. */
export const noteSize = 4

/** Stands behind the notes of a record: nothing comes after it. */
export const endOfNotes = 0x7fffffff

/**
 * Where members of the records of a page stand, counted from the first byte of their record as it leaves. In order of
 * place, so that the notes of a member's own members follow its own. Numbers alone, since there are a hundred thousand.
 */
export type Notes = {
  numbers: Int32Array
  length: number
  /** Where the notes of the record under way begin. */
  first: number
  /** Makes room for another note. */
  readonly grow: () => void
  /** Nobody looks at them any more. */
  readonly release: () => void
}

/** Notes in buffers of `pool`, at first with room for so many bytes of them. */
export const notesIn = ({ take, give }: Pool, expected: number): Notes => {
  let buffer = take(expected)
  const notes: Notes = {
    numbers: numbersIn(buffer),
    length: 0,
    first: 0,
    grow: () => {
      const larger = take(buffer.length * 2)
      buffer.copy(larger)
      give(buffer)
      buffer = larger
      notes.numbers = numbersIn(buffer)
    },
    release: () => {
      give(buffer)
      buffer = Buffer.alloc(0)
    },
  }
  return notes
}

const numbersIn = ({ buffer, byteOffset, length }: Buffer): Int32Array =>
  new Int32Array(buffer, byteOffset, Math.floor(length / (4 * noteSize)) * noteSize)

/** Notes a member that is wanted, by where its key stands as it leaves and its value as it came; answers the note. */
export const noteStart = ({ notes, shift }: Walk, { slot }: Shape, key: number, from: number): number =>
  slot < 0 || notes === undefined ? -1 : add(notes, slot, key, from + shift)

/** Notes where the value ends, as it came. */
export const noteEnd = ({ notes, shift }: Walk, note: number, to: number): void => {
  if (note >= 0 && notes !== undefined) notes.numbers[note + 3] = to + shift
}

const add = (notes: Notes, slot: number, key: number, from: number): number => {
  const at = notes.length
  if (at + noteSize > notes.numbers.length) notes.grow()
  const { numbers } = notes
  numbers[at] = slot
  numbers[at + 1] = key
  numbers[at + 2] = from
  numbers[at + 3] = from
  notes.length = at + noteSize
  return at
}

/** The record under way begins. */
export const noteRecord = (notes: Notes): void => {
  notes.first = notes.length
}

/** The record under way has ended. */
export const noteRecordEnd = (notes: Notes): void => {
  add(notes, 0, endOfNotes, endOfNotes)
}

/** Takes back the notes of this record on what stands behind a place. */
export const forgetAfter = (notes: Notes, place: number): void => {
  while (notes.length > notes.first && (notes.numbers[notes.length - 2] ?? 0) > place) notes.length -= noteSize
}
