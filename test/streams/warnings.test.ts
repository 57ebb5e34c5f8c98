import { expect, test } from 'vitest'
import { collectUnknownAttributes } from '../../connector/streams/unknown-attributes'

test('undeclared attributes are named once, and no more than twenty of them', () => {
  const nameUnknown = collectUnknownAttributes()
  const paths = Array.from({ length: 3000 }, (_, i) => `reviews.field_${i}`)
  expect(nameUnknown(paths.slice(0, 2))).toEqual([
    'The service sent an attribute this version does not know: reviews.field_0.',
    'The service sent an attribute this version does not know: reviews.field_1.',
  ])
  expect(nameUnknown(paths.slice(0, 2))).toEqual([])
  const more = nameUnknown(paths)
  expect(more).toHaveLength(19)
  expect(more.at(-1)).toBe('The service sent more attributes this version does not know; they are not named here.')
  expect(nameUnknown(paths)).toEqual([])
})
