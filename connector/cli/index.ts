/**
 * The programs as a person or a platform types them: a file for each program or verb, and the table of programs. In go
 * arguments and a `CommandIo`; out come text on stdout and stderr, and an exit status. A command is loaded when it
 * runs.
 */
export { type ProgramName, programs } from './programs'
