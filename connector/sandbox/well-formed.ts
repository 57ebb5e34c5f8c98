const lonely = /\p{Surrogate}/u

/** Whether all texts in a value are Unicode: JSON can write half a surrogate pair, which no database keeps. */
export const isWellFormed = (value: unknown): boolean => {
  if (typeof value === 'string') return !lonely.test(value)
  if (typeof value !== 'object' || value === null) return true
  return Object.entries(value).every(([key, field]) => !lonely.test(key) && isWellFormed(field))
}
