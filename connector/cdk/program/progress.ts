/** The shortest time between two redraws on a terminal, and between two lines elsewhere, in milliseconds. */
const redrawInterval = 200
const progressLineInterval = 60_000

/**
 * How many milliseconds a usually quick command waits before it shows progress, so that the line does not just flash.
 */
export const progressDelay = 2_000

/** Where progress is shown. `columns`: the width of the terminal; undefined if there is none. */
type ProgressOutput = {
  readonly columns: () => number | undefined
  readonly write: (text: string) => void
  readonly now: () => number
}

/**
 * Prints progress. On a terminal, one line that is redrawn at most five times a second and never wraps. Elsewhere, a
 * line with its time once a minute, the first after a minute. An empty line clears it.
 */
export const createProgressPrinter = ({ columns, write, now }: ProgressOutput) => {
  const startedAt = now()
  let isDrawn = false
  let lastRedraw = Number.NEGATIVE_INFINITY
  let lastLine = startedAt
  let shown = ''
  /** When a terminal may draw the pending line; undefined without a pending line. */
  let waitsUntil: number | undefined
  const clear = (): void => {
    if (isDrawn) write('\r\x1b[K')
    isDrawn = false
    waitsUntil = undefined
  }
  const draw = (line: string, width: number, from: number): void => {
    const at = now()
    waitsUntil = Math.max(from, lastRedraw + redrawInterval)
    if (at < waitsUntil) return
    lastRedraw = at
    isDrawn = true
    waitsUntil = undefined
    write(`\r\x1b[K${line.length < width ? line : `${line.slice(0, Math.max(0, width - 2))}…`}`)
  }
  /** `after`: on a terminal, the milliseconds from the start of the run before the line may appear. */
  const print = (line: string, after = 0): void => {
    const at = now()
    const width = columns()
    shown = line
    if (line === '') clear()
    else if (width !== undefined) draw(line, width, startedAt + after)
    else if (at - lastLine >= progressLineInterval) {
      lastLine = at
      write(`${new Date(at).toISOString()} ${line}\n`)
    }
  }
  /**
   * Call this now and then. On a terminal, it draws the pending line. Elsewhere, it repeats the line, so that a log
   * shows that the run is still alive.
   */
  const repeat = (): void => {
    const width = columns()
    if (width === undefined) print(shown)
    else if (waitsUntil !== undefined) draw(shown, width, waitsUntil)
  }
  return { print, clear, repeat }
}
