/**
 * The texts in a source file that a user may read: literals with a space, with `…` for the inserted values of a
 * template. Skips comments, imports and regular expressions with quotes, line by line.
 */
export const listTexts = (source: string): ReadonlyArray<string> => {
  const code = source.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|\s)\/\/.*$/gm, '$1')
  const texts: string[] = []
  let at = 0
  /** Reads a literal from after its opening quote; `at` ends after its closing one. */
  const readLiteral = (quote: string): string => {
    let text = ''
    while (at < code.length && code[at] !== quote) {
      if (code[at] === '\\') {
        text += code[at + 1]
        at += 2
      } else if (quote === '`' && code.startsWith('${', at)) {
        at += 2
        readCode('}')
        text += '…'
      } else {
        text += code[at]
        at += 1
      }
    }
    at += 1
    return text
  }
  /** Reads code up to `end`, outside all inner braces. */
  const readCode = (end: string | undefined): void => {
    let depth = 0
    while (at < code.length) {
      const char = code[at] ?? ''
      at += 1
      if (char === end && depth === 0) return
      if (char === '{') depth += 1
      if (char === '}') depth -= 1
      if (char === "'" || char === '`') texts.push(readLiteral(char))
    }
  }
  readCode(undefined)
  return texts.filter((text) => /[a-z]{2}.* .*[a-z]{2}/i.test(text))
}
