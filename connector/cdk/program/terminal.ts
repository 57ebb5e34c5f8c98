import { constants, openSync, writeSync } from 'node:fs'

/**
 * Writes to the terminal behind stderr what it takes at once, and drops the rest: Node's own writes to a terminal wait,
 * and one that is stopped by Ctrl-S would hold up the process. Undefined where the terminal cannot be opened once more.
 */
export const createTerminalWriter = (): ((text: string) => void) | undefined => {
  const { O_WRONLY, O_NONBLOCK, O_NOCTTY } = constants
  try {
    const fd = openSync('/dev/stderr', O_WRONLY | O_NONBLOCK | O_NOCTTY)
    return (text) => {
      try {
        writeSync(fd, text)
      } catch {
        // It takes nothing now; the next redraw shows more.
      }
    }
  } catch {
    return undefined
  }
}

/** https://no-color.org: any text in NO_COLOR but the empty one turns colors off. */
export const showsColors = ({ stdout, env }: Pick<NodeJS.Process, 'stdout' | 'env'>): boolean =>
  stdout.isTTY === true && (env.NO_COLOR ?? '') === '' && env.TERM !== 'dumb'
