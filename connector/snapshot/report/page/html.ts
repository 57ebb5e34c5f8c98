/** Text that is HTML already: made by `html` or by the chart library, never from data. */
export class Html {
  constructor(readonly text: string) {}
}

type Part = Html | string | number | null | undefined | ReadonlyArray<Part>

/** A template of HTML: what is put in is escaped, unless it is HTML; lists follow one another, null and undefined are nothing. */
export const html = (texts: TemplateStringsArray, ...parts: ReadonlyArray<Part>): Html =>
  new Html(texts.map((text, i) => (i === 0 ? text : `${textOf(parts[i - 1])}${text}`)).join(''))

const textOf = (part: Part): string => {
  if (part === null || part === undefined) return ''
  if (part instanceof Html) return part.text
  if (typeof part === 'string' || typeof part === 'number') return escaped(String(part))
  return part.map(textOf).join('')
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

const escaped = (text: string): string => text.replaceAll(/[&<>"']/g, (sign) => entities[sign] ?? sign)
