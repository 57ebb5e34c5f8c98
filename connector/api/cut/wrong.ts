import { indexedPathOf, type Shape } from './shape'
import { type CutState, replaceSpan } from './walk'

/** What becomes of a value of the wrong type: null where its place may be null, else what holds it is wrong too. */
export const rejectValue = (
  walk: CutState,
  shape: Shape,
  from: number,
  to: number,
  edits: number,
  changes: number,
): number => {
  walk.isInvalid = !shape.nullable
  if (shape.nullable) {
    replaceSpan(walk, from, to, 'null', edits)
    walk.changes.length = changes
    walk.changes.push({ field: indexedPathOf(shape), change: 'NULLED', reason: 'SOURCE_SERIALIZATION_ERROR' })
  }
  return to
}
