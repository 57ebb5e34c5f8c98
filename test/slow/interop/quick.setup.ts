import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { pythonProgram, quickProgram } from './shell'

const writeProgram = (path: string, text: string): void => {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, `#!/bin/sh\n${text}\n`, { mode: 0o755 })
}

/**
 * A pip that installs. uv finds at once what pip takes seconds to find: that the environment has the version already.
 */
const writePip = (environment: 'meltano' | 'airbyte' | 'dlt'): void => {
  const home = resolve(pythonProgram(environment, ''), '..')
  const uv = resolve(pythonProgram('uv', 'uv'))
  writeProgram(
    quickProgram(environment, 'pip'),
    `[ "$1" = install ] || exit 2\nshift\nVIRTUAL_ENV='${home}' exec '${uv}' pip install "$@"`,
  )
}

/**
 * Makes the programs that `quickProgram` names, for all files. PyAirbyte has none: what it imports starts threads,
 * which no fork has.
 */
export default async (): Promise<() => void> => {
  const folder = mkdtempSync(join(tmpdir(), 'quick-'))
  process.env.INTEROP_QUICK = folder
  writePip('meltano')
  writePip('airbyte')
  writePip('dlt')
  const python = resolve(pythonProgram('meltano', 'python'))
  const socket = join(folder, 'socket')
  const words = [python, '-IS', join(__dirname, 'run_forked.py'), socket, 'meltano.cli:main', 'meltano']
  writeProgram(quickProgram('meltano', 'meltano'), `exec ${words.map((word) => `'${word}'`).join(' ')} "$@"`)
  const modules = ['meltano.cli', 'alembic.command', 'sqlalchemy.dialects.sqlite']
  const server = spawn(python, [join(__dirname, 'serve_python.py'), socket, ...modules], {
    cwd: folder,
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  await once(server.stdout, 'readable')
  return () => {
    server.kill()
    rmSync(folder, { recursive: true, force: true })
  }
}
