type Yaml = string | number | boolean | null | ReadonlyArray<Yaml> | { readonly [key: string]: Yaml }
type Line = { readonly indent: number; readonly text: string }

const scalar = (text: string): Yaml => {
  if (/^"/.test(text)) return JSON.parse(text) as string
  if (/^-?\d+(\.\d+)?$/.test(text)) return Number(text)
  if (/^(true|false|null)$/.test(text)) return JSON.parse(text) as Yaml
  if (/^[[{&*!|>'%@`]|: | #/.test(text)) throw new Error(`More YAML than is read here: ${text}`)
  return text
}

const block = (lines: Array<Line>, indent: number): Yaml => {
  const items: Array<Yaml> = []
  const entries: Array<[string, Yaml]> = []
  for (let line = lines[0]; line !== undefined && line.indent >= indent; line = lines[0]) {
    if (line.indent > indent) throw new Error(`Unexpected indentation: ${line.text}`)
    const [, dash] = /^- (.*)$/.exec(line.text) ?? []
    const [, key, value] = /^([\w-]+):(?: (.*))?$/.exec(line.text) ?? []
    if (dash !== undefined && /^[\w-]+:(?: |$)/.test(dash)) {
      lines[0] = { indent: indent + 2, text: dash }
      items.push(block(lines, indent + 2))
    } else if (dash !== undefined) {
      lines.shift()
      items.push(scalar(dash))
    } else if (key !== undefined) {
      lines.shift()
      entries.push([key, value === undefined ? block(lines, lines[0]?.indent ?? 0) : scalar(value)])
    } else throw new Error(`Neither key nor item: ${line.text}`)
  }
  if (items.length > 0 && entries.length > 0) throw new Error('Keys and items in one block')
  return items.length > 0 ? items : Object.fromEntries(entries)
}

/** Plain block YAML: maps, lists and scalars, one to a line; throws on anything richer. */
export const parseYaml = (text: string): Yaml =>
  block(
    text
      .split('\n')
      .filter((line) => !/^\s*(#|$)/.test(line))
      .map((line) => ({ indent: line.search(/\S/), text: line.trim() })),
    0,
  )
