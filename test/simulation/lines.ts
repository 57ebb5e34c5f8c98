/**
 * Splits what a process prints into lines, the way its reader gets it: in pieces that may be cut within a character.
 * `rest`: a last line without an end, as a kill leaves it.
 */
export const createLineSplitter = (takeLine: (line: string) => void) => {
  let rest = ''
  return {
    take: (bytes: Buffer): void => {
      const lines = (rest + bytes.toString('latin1')).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) takeLine(Buffer.from(line, 'latin1').toString())
    },
    rest: (): string => rest,
  }
}

/** Takes the lines that a process prints, but not a last one without an end. */
export const createLineReader = (takeLine: (line: string) => void): ((bytes: Buffer) => void) =>
  createLineSplitter(takeLine).take

/** The message of a line; one without members where the line is not whole. */
export const parseLine = (line: string, report: (oracle: string, what: string) => void) => {
  try {
    return JSON.parse(line)
  } catch {
    report('whole lines', line.slice(0, 200))
    return {}
  }
}
