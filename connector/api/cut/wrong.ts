import { placeOf, type Shape } from './shape'
import { replace, type Walk } from './walk'

/** What becomes of a value of the wrong type: null where its place may be null, else what holds it is wrong too. */
export const wrong = (walk: Walk, shape: Shape, from: number, to: number, edits: number, changes: number): number => {
  walk.wrong = !shape.nullable
  if (shape.nullable) {
    replace(walk, from, to, 'null', edits)
    walk.changes.length = changes
    walk.changes.push({ field: placeOf(shape), change: 'NULLED', reason: 'SOURCE_SERIALIZATION_ERROR' })
  }
  return to
}
