import { constants, openSync, writeSync } from 'node:fs'

/**
 * Writes what the terminal behind stderr accepts at once, and drops the rest. Node's own writes to a terminal wait, so
 * a terminal stopped by Ctrl-S would block the process. Undefined if the terminal cannot be opened a second time.
 */
export const createTerminalWriter = (): ((text: string) => void) | undefined => {
  const { O_WRONLY, O_NONBLOCK, O_NOCTTY } = constants
  try {
    const fd = openSync('/dev/stderr', O_WRONLY | O_NONBLOCK | O_NOCTTY)
    return (text) => {
      try {
        writeSync(fd, text)
      } catch {
        // The terminal accepts nothing now. The next redraw shows more.
      }
    }
  } catch {
    return undefined
  }
}

/** https://no-color.org: any non-empty value of NO_COLOR turns colors off. */
export const showsColors = ({ stdout, env }: Pick<NodeJS.Process, 'stdout' | 'env'>): boolean =>
  stdout.isTTY === true && (env.NO_COLOR ?? '') === '' && env.TERM !== 'dumb'
