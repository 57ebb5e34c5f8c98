/** Repeatable choices. */
export type Chance = {
  /** A number from 0 to less than 1. */
  readonly next: () => number
  /** A whole number from `least` to `most`. */
  readonly between: (least: number, most: number) => number
  /** True with this probability. */
  readonly happens: (probability: number) => boolean
  readonly pick: <A>(choices: ReadonlyArray<A>) => A
  /** Independent choices, so that what one part draws does not change what another draws. */
  readonly split: (name: string) => Chance
}

const hashText = (text: string, seed: number): number => {
  let hash = seed ^ 0x811c9dc5
  for (let i = 0; i < text.length; i += 1) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return hash >>> 0
}

export const createChance = (seed: number): Chance => {
  // mulberry32
  let state = seed | 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
  const between = (least: number, most: number): number => least + Math.floor(next() * (most - least + 1))
  return {
    next,
    between,
    happens: (probability) => next() < probability,
    pick: <A>(choices: ReadonlyArray<A>): A => choices[between(0, choices.length - 1)] as A,
    split: (name) => createChance(hashText(name, seed)),
  }
}
