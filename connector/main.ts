import { runProgram } from './cdk'
import { type ProgramName, programs } from './cli'

/** Runs one of the programs in this process. No other file names `process`. */
export const main = (name: ProgramName): void => runProgram(name, programs[name], process)
