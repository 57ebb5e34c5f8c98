import * as E from 'fp-ts/Either'

/** Parses JSON. The error names the line and column and quotes nothing. */
export const parseJson = (text: string): E.Either<string, unknown> =>
  E.tryCatch(
    () => JSON.parse(text),
    () => {
      const at = findErrorPosition(text)
      if (at === undefined) return 'is not JSON: it ends too early or is empty'
      const before = text.slice(0, at - 1).split('\n')
      return `is not JSON: it breaks at line ${before.length}, column ${(before.at(-1) ?? '').length + 1}`
    },
  )

/**
 * Finds the shortest prefix that is broken. The engine's own message may quote the text, and only sometimes names the
 * position.
 */
const findErrorPosition = (text: string): number | undefined => {
  if (isIncomplete(text)) return undefined
  let [low, high] = [0, text.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (isIncomplete(text.slice(0, middle))) low = middle + 1
    else high = middle
  }
  return low
}

const isIncomplete = (text: string): boolean => {
  try {
    JSON.parse(text)
    return true
  } catch (error) {
    const message = String(error)
    return (
      /Unexpected end|Unterminated/.test(message) ||
      message.includes(`position ${text.length} `) ||
      message.endsWith(`position ${text.length}`)
    )
  }
}
