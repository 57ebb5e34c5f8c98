/**
 * Splits what a process prints into lines, as its reader gets it: in pieces that may be cut within a character. A last line without an
 * end, as a kill leaves it, is not taken.
 */
export const createLineReader = (takeLine: (line: string) => void): ((bytes: Buffer) => void) => {
  let rest = ''
  return (bytes) => {
    const lines = (rest + bytes.toString('latin1')).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) takeLine(Buffer.from(line, 'latin1').toString())
  }
}

/** The message of a line; one without members where the line is not whole. */
export const parseLine = (line: string, report: (oracle: string, what: string) => void) => {
  try {
    return JSON.parse(line)
  } catch {
    report('whole lines', line.slice(0, 200))
    return {}
  }
}
