import { inflateSync } from 'node:zlib'

/** A line of a printed page: its distance from the upper edge as a share of the page's height, and its text. */
type PdfLine = { readonly at: number; readonly text: string }

/** The pages of a document that Chromium printed, each as its lines from top to bottom. */
export const readPdfPages = (pdf: Buffer): ReadonlyArray<ReadonlyArray<PdfLine>> => {
  const objects = readObjects(pdf)
  const followed = (text: string, name: string) => objects.get(new RegExp(`/${name} (\\d+) 0 R`).exec(text)?.[1] ?? '')
  return [...objects.values()]
    .filter(({ text }) => /\/Type \/Page\b(?!s)/.test(text))
    .map(({ text }) => {
      const fonts = new Map(
        [...text.matchAll(/\/(F\d+) (\d+) 0 R/g)].map(([, name = '', id = '']) => [
          name,
          readCharacters(followed(objects.get(id)?.text ?? '', 'ToUnicode')?.stream ?? ''),
        ]),
      )
      const height = Number(/\/MediaBox \[\S+ \S+ \S+ ([\d.]+)\]/.exec(text)?.[1])
      return readLines(followed(text, 'Contents')?.stream ?? '', fonts, height)
    })
}

type PdfObject = { readonly text: string; readonly stream: string }

const readObjects = (pdf: Buffer): ReadonlyMap<string, PdfObject> => {
  const all = pdf.toString('latin1')
  return new Map(
    [...all.matchAll(/(?<=\n)(\d+) 0 obj\n([\s\S]*?)(?:stream\r?\n|endobj)/g)].map((found) => {
      const [whole, id = '', text = ''] = found
      const start = (found.index ?? 0) + whole.length
      const isPacked = whole.trimEnd().endsWith('stream') && text.includes('/FlateDecode')
      const packed = isPacked ? pdf.subarray(start, all.indexOf('endstream', start)) : undefined
      return [id, { text, stream: packed === undefined ? '' : inflateSync(packed).toString('latin1') }]
    }),
  )
}

/** The character of each glyph of a font. */
const readCharacters = (map: string): ReadonlyMap<number, string> => {
  const characters = new Map<number, string>()
  const hex = (digits = '') => Number.parseInt(digits, 16)
  for (const [, block = ''] of map.matchAll(/beginbfchar\n([\s\S]*?)endbfchar/g))
    for (const [, glyph, code] of block.matchAll(/<(\w+)> <(\w{4})\w*>/g))
      characters.set(hex(glyph), String.fromCharCode(hex(code)))
  for (const [, block = ''] of map.matchAll(/beginbfrange\n([\s\S]*?)endbfrange/g))
    for (const [, from, to, code] of block.matchAll(/<(\w+)> <(\w+)> <(\w+)>/g))
      for (let i = 0; i <= hex(to) - hex(from); i += 1)
        characters.set(hex(from) + i, String.fromCharCode(hex(code) + i))
  return characters
}

/** Chromium neither turns nor slants text, so its height on the page is a factor and a distance. */
const readLines = (
  content: string,
  fonts: ReadonlyMap<string, ReadonlyMap<number, string>>,
  height: number,
): ReadonlyArray<PdfLine> => {
  const outer: Array<readonly [number, number]> = []
  let [scale, shift] = [1, 0]
  let font: ReadonlyMap<number, string> = new Map()
  let at = 0
  const lines = new Map<number, string>()
  for (const line of content.split('\n')) {
    const words = line.trim().split(' ')
    const operator = words.at(-1)
    if (operator === 'q') outer.push([scale, shift])
    else if (operator === 'Q') [scale, shift] = outer.pop() ?? [1, 0]
    else if (operator === 'cm') [scale, shift] = [scale * Number(words[3]), shift + scale * Number(words[5])]
    else if (operator === 'Tf') font = fonts.get(words[0]?.slice(1) ?? '') ?? font
    else if (operator === 'Tm') at = Math.round(height - (shift + scale * Number(words[5])))
    for (const [, glyphs = ''] of line.matchAll(/<(\w+)> Tj/g)) {
      const text = (glyphs.match(/\w{4}/g) ?? []).map((glyph) => font.get(Number.parseInt(glyph, 16)) ?? '?').join('')
      lines.set(at, (lines.get(at) ?? '') + text)
    }
  }
  return [...lines].map(([y, text]) => ({ at: y / height, text })).toSorted((a, b) => a.at - b.at)
}
