/** The months that a report compares, such as 2026-10. */
export type MonthPair = { readonly month: string; readonly previous: string }

/** The month `count` months later, or earlier if negative. */
export const addMonths = (month: string, count: number): string => {
  const [year = 0, number = 0] = month.split('-').map(Number)
  const sum = year * 12 + number - 1 + count
  return `${String(Math.floor(sum / 12)).padStart(4, '0')}-${String((sum % 12) + 1).padStart(2, '0')}`
}

export const earlierMonth = (a: string, b: string): string => (a < b ? a : b)
export const laterMonth = (a: string, b: string): string => (a > b ? a : b)

/** Runs `body` while the models see only the reviews of one month. */
export type FocusMonth = <A>(month: string, body: () => Promise<A>) => Promise<A>
