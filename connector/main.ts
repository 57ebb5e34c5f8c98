import { runProgram } from './cdk'
import { type ProgramName, programs } from './cli'

/** Runs one of the programs in this process. No other file names `process`. What it writes holds the words of patients: only its owner may read it. */
export const main = (name: ProgramName): void => {
  process.umask(0o077)
  runProgram(name, programs[name], process)
}
