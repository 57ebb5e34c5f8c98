import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { pythonProgram, type ShellResult } from '../interop/shell'

type Place = { readonly cwd: string; readonly env?: Readonly<Record<string, string | undefined>> }

/** Starts a program that answers each line with a line, one at a time; it ends with this process. */
export const startAnswering = (
  program: string,
  args: ReadonlyArray<string>,
  { cwd, env }: Place,
): ((line: string) => Promise<string>) => {
  const server = spawn(program, args, { cwd, env: { ...process.env, ...env }, stdio: ['pipe', 'pipe', 'inherit'] })
  const answers = createInterface(server.stdout)[Symbol.asyncIterator]()
  return async (line) => {
    server.stdin.write(`${line}\n`)
    const { value, done } = await answers.next()
    if (done) throw new Error(`${program} has ended without an answer to ${line}`)
    return value
  }
}

/**
 * Runs a Python program, given by path and arguments, as a separate process. The given modules are imported once for
 * all following programs.
 */
export type Python = (
  program: string,
  args: ReadonlyArray<string>,
  modules?: ReadonlyArray<string>,
) => Promise<ShellResult>

/** Starts a Python that runs programs; warnings of what it imports are not of the test. */
export const startPython = (environment: Parameters<typeof pythonProgram>[0], { cwd, env }: Place): Python => {
  const server = [join(__dirname, 'serve.py')]
  const ask = startAnswering(pythonProgram(environment, 'python'), server, {
    cwd,
    env: { ...env, PYTHONWARNINGS: 'ignore' },
  })
  return async (program, args, modules = []) =>
    JSON.parse(await ask(JSON.stringify({ import: modules, run: [program, ...args] })))
}
