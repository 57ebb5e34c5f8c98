const simplifyName = (name: string): string => name.toLowerCase().replaceAll(/[^a-z0-9]/g, '')

/** How many letters must be added, dropped, replaced or swapped with their neighbor to turn `a` into `b`. */
const countTypos = (a: string, b: string): number => {
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, j) => j)]
  const at = (i: number, j: number): number => rows[i]?.[j] ?? Number.POSITIVE_INFINITY
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i]
    rows.push(row)
    for (let j = 1; j <= b.length; j += 1) {
      const isSwapped = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      row.push(
        Math.min(
          at(i - 1, j) + 1,
          at(i, j - 1) + 1,
          at(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1),
          isSwapped ? at(i - 2, j - 2) + 1 : Number.POSITIVE_INFINITY,
        ),
      )
    }
  }
  return at(a.length, b.length)
}

/** The known name that the user probably meant; undefined if none is close. Ignores case, hyphens and underscores. */
export const findNearestName = (word: string, names: ReadonlyArray<string>): string | undefined => {
  const given = simplifyName(word)
  const maxTypos = Math.max(1, Math.floor(given.length / 3))
  const isPart = (name: string) =>
    given.length >= 3 && (name.startsWith(given) || (name.length >= 3 && given.startsWith(name)))
  const [nearest] = names
    .map((name) => ({ name, simple: simplifyName(name) }))
    .filter(({ simple }) => isPart(simple) || Math.abs(simple.length - given.length) <= maxTypos)
    .map(({ name, simple }) => ({ name, isPart: isPart(simple), typos: countTypos(given, simple) }))
    .filter(({ typos, isPart }) => isPart || typos <= maxTypos)
    .sort((a, b) => a.typos - b.typos)
  return nearest?.name
}

/** ` Did you mean …?` if a known name is close, otherwise an empty string. */
export const suggestName = (word: string, names: ReadonlyArray<string>): string => {
  const name = findNearestName(word, names)
  return name === undefined ? '' : ` Did you mean ${name}?`
}
