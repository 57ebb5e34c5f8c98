/** Text that is HTML already: made by `html` or by the chart library, never from data. */
export class Html {
  constructor(readonly text: string) {}
}

type HtmlPart = Html | string | number | null | undefined | ReadonlyArray<HtmlPart>

/** A template of HTML: what is put in is escaped, unless it is HTML; lists follow one another, null and undefined are nothing. */
export const html = (texts: TemplateStringsArray, ...parts: ReadonlyArray<HtmlPart>): Html =>
  new Html(texts.map((text, i) => (i === 0 ? text : `${toHtmlText(parts[i - 1])}${text}`)).join(''))

const toHtmlText = (part: HtmlPart): string => {
  if (part === null || part === undefined) return ''
  if (part instanceof Html) return part.text
  if (typeof part === 'string' || typeof part === 'number') return escapeHtml(String(part))
  return part.map(toHtmlText).join('')
}

const htmlEntities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

const escapeHtml = (text: string): string => text.replaceAll(/[&<>"']/g, (sign) => htmlEntities[sign] ?? sign)
