/** How many things are remembered; one that is forgotten and met again is sent again. */
const maxPairsAndVersions = 200_000

/** Lets a pair of names pass the first time it is met. */
export const createPairFilter = () => {
  const seen = new Map<string, Set<string>>()
  let size = 0
  return (first: string, second: string): boolean => {
    const held = seen.get(first)
    if (held?.has(second) === true) return false
    if (held === undefined) seen.set(first, new Set([second]))
    else held.add(second)
    size += 1
    if (size > maxPairsAndVersions) {
      seen.clear()
      size = 0
    }
    return true
  }
}

/**
 * Lets a thing pass the first time it is met, and again only with a later time and another text: never an older version
 * after a newer. `time` in milliseconds; `text` is what is compared.
 */
export const createVersionFilter = () => {
  const seen = new Map<string, { time: number; text: string }>()
  return (key: string, time: number, text: () => string): boolean => {
    const held = seen.get(key)
    if (held !== undefined && held.time >= time) return false
    const now = text()
    if (held === undefined) {
      seen.set(key, { time, text: now })
      if (seen.size > maxPairsAndVersions) seen.delete(seen.keys().next().value ?? '')
      return true
    }
    held.time = time
    if (held.text === now) return false
    held.text = now
    return true
  }
}
