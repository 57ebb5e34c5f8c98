/**
 * The programs as a person or a platform types them: one file for each program or verb, and the table of programs. In go a
 * program's name, its arguments and a `CommandIo`; out come text on stdout and stderr, and an exit status. A command is loaded
 * when it runs.
 */
export { exitsOnSignal, type ProgramName, runProgram } from './programs'
