/** A mutant that no test has killed. */
const isAlive = ({ status }) => status === 'Survived' || status === 'NoCoverage'
const isKilled = ({ status }) => status === 'Killed' || status === 'Timeout'

/** The text between two places of a source; lines and columns count from 1. */
const textBetween = (lines, { start, end }) => {
  const inside = lines.slice(start.line - 1, end.line)
  const last = inside.length - 1
  return inside
    .map((line, n) => line.slice(n === 0 ? start.column - 1 : 0, n === last ? end.column - 1 : undefined))
    .join('\n')
}

/** One line of Markdown code; of a long text its two ends. */
const inCode = (text) => {
  const line = text.replace(/\s+/g, ' ').replaceAll('`', "'").trim()
  return `\`${line.length > 90 ? `${line.slice(0, 60)} … ${line.slice(-25)}` : line || ' '}\``
}

/** The declaration at the left margin that a line belongs to. */
const declarationAt = (lines, line) =>
  lines
    .slice(0, line)
    .map((text) => /^(?:export )?(?:const|function|type) (\w+)/.exec(text)?.[1])
    .findLast((name) => name !== undefined) ?? 'the file'

/**
 * A mutant as survivors.md names it: its declaration and both texts, which stay the same when lines above it come and
 * go. The same change at several places of a declaration has a number.
 */
const nameMutants = ({ source, mutants }) => {
  const lines = source.split('\n')
  const named = mutants
    .toSorted(
      (a, b) => a.location.start.line - b.location.start.line || a.location.start.column - b.location.start.column,
    )
    .map((mutant) => ({
      mutant,
      name:
        `\`${declarationAt(lines, mutant.location.start.line)}\`: ` +
        `${inCode(textBetween(lines, mutant.location))} → ${inCode(mutant.replacement)}`,
    }))
  return named.map(({ mutant, name }, n) => {
    const same = named.filter((other) => other.name === name)
    const earlier = named.slice(0, n).filter((other) => other.name === name)
    return { ...mutant, name: same.length === 1 ? name : `${name} (${earlier.length + 1} of ${same.length})` }
  })
}

/** Counts and survivors of one file of a report. */
export const readReport = (report) => {
  const mutants = nameMutants(report)
  return {
    killed: mutants.filter(isKilled).length,
    timedOut: mutants.filter(({ status }) => status === 'Timeout').length,
    alive: mutants.filter(isAlive).map(({ name, location }) => ({ name, line: location.start.line })),
  }
}

/**
 * The mutants that survivors.md lists, by file: a heading each, a reason, and below it the mutants that it is true of.
 */
export const readSurvivors = (text) => {
  const listed = new Map()
  let names
  for (const line of text.split('\n')) {
    const file = /^## `(.*)`$/.exec(line)?.[1]
    if (file !== undefined) {
      names = new Set()
      listed.set(file, names)
    }
    const name = /^ {2}- (.*)$/.exec(line)?.[1]
    if (name !== undefined) names?.add(name)
  }
  return listed
}
