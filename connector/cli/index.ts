/**
 * The programs as a person or a platform types them: one file per program or verb, and the table of programs. Input:
 * arguments and a `CommandIo`. Output: text on stdout and stderr, and an exit status. A command is loaded when it runs.
 */
export { type ProgramName, programs } from './programs'
