const loneSurrogate = /\p{Surrogate}/u

/** Whether all texts in a value are Unicode: JSON can write half a surrogate pair, which no database keeps. */
export const isWellFormed = (value: unknown): boolean => {
  if (typeof value === 'string') return !loneSurrogate.test(value)
  if (typeof value !== 'object' || value === null) return true
  return Object.entries(value).every(([key, field]) => !loneSurrogate.test(key) && isWellFormed(field))
}
