import { cpSync, mkdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import type { Sandbox } from '../../../connector/sandbox/start'
import manifest from '../../../package.json'
import { docsFolder, fillIn } from '../../support/doc-blocks'
import { pythonProgram, requireOutput, runShellOrThrow } from '../interop/shell'
import type { Postgres } from './postgres'
import { type Python, startPython } from './python'

export const packageFolder = join(__dirname, '..', '..', '..', 'dbt')

export type Row = Readonly<Record<string, string | number | boolean | null>>
export type Relations = Readonly<Record<string, ReadonlyArray<Row>>>

/** The project that docs/models.md makes. */
export type Project = {
  readonly folder: string
  /** Runs the shell commands under a heading of the page; returns what they print. */
  readonly runSection: (heading: string) => Promise<string>
  readonly dbt: (...args: ReadonlyArray<string>) => Promise<string>
  /** Runs a Python program where dbt is, which must end well; returns what it prints. */
  readonly python: (...given: Parameters<Python>) => Promise<string>
  /** The rows of relations of a DuckDB file, or of a schema of PostgreSQL. */
  readonly readRows: (
    kind: 'duckdb' | 'postgres',
    place: string,
    relations: ReadonlyArray<string>,
  ) => Promise<Relations>
}

/** The shell commands of each section of the page, by its heading. */
const sections = (sandbox: Sandbox): ReadonlyMap<string, string> =>
  new Map(
    readFileSync(join(docsFolder, 'models.md'), 'utf8')
      .split(/^#{2,3} /m)
      .map((section) => [
        section.slice(0, section.indexOf('\n')),
        [...section.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, text = '']) => fillIn(text, sandbox)).join('\n'),
      ]),
  )

/** Runs dbt for each list of arguments that comes to a socket, as bin/dbt sends it. */
const serveDbt = (path: string, dbt: (args: ReadonlyArray<string>) => ReturnType<Python>): Promise<void> => {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    let args = ''
    socket.setEncoding('utf8')
    socket.on('data', (text: string) => {
      args += text
    })
    socket.on('end', async () => {
      const answer = await dbt(JSON.parse(args)).catch((error) => ({ status: 1, output: String(error) }))
      socket.end(JSON.stringify(answer))
    })
  }).unref()
  return new Promise((resolve) => server.listen(path, resolve))
}

/**
 * Prepares the page's commands: the package as a git repository, and programs on the path. `folder` holds
 * reviews.duckdb and config.json.
 */
export const createProject = async (
  sandbox: Sandbox,
  postgres: Postgres,
  folder: string,
  adapters: ReadonlyArray<string> = ['duckdb', 'postgres'],
): Promise<Project> => {
  const git = join(folder, 'git')
  mkdirSync(git)
  cpSync(packageFolder, join(git, 'dbt'), { recursive: true })
  const commit =
    'git init -q . && git add . && git -c user.name=t -c ' +
    `user.email=t@example.com commit -qm Package && git tag v${manifest.version}`
  await runShellOrThrow('bash', ['-c', commit], { cwd: git })
  const settings = {
    ...postgres.env,
    FEEDBACK_GIT: `file://${git}`,
    DBT_SEND_ANONYMOUS_USAGE_STATS: 'false',
    DBT_USE_COLORS: 'false',
  }
  const python = startPython('dbt', { cwd: folder, env: settings })
  const socket = join(folder, 'dbt.sock')
  const modules = ['dbt.cli.main', ...adapters.map((name) => `dbt.adapters.${name}`)]
  const dbt = (args: ReadonlyArray<string>) => python(pythonProgram('dbt', 'dbt'), args, modules)
  await serveDbt(socket, dbt)
  const env = {
    ...settings,
    DBT_SOCKET: socket,
    PATH: [
      join(packageFolder, '..', 'node_modules', '.bin'),
      join(__dirname, 'bin'),
      join(pythonProgram('dbt', 'python'), '..'),
      process.env.PATH,
    ].join(':'),
  }
  const how = { cwd: folder, env }
  const blocks = sections(sandbox)
  const runPython: Project['python'] = async (program, args, modules) =>
    requireOutput([program, ...args].join(' '), await python(program, args, modules))
  return {
    folder,
    runSection: (heading) => {
      const text = blocks.get(heading)
      if (text === undefined || text === '') throw new Error(`docs/models.md has no commands under ${heading}`)
      return runShellOrThrow('bash', ['-c', `set -euo pipefail\n${text}`], how)
    },
    python: runPython,
    dbt: async (...args) => requireOutput(`dbt ${args.join(' ')}`, await dbt(args)),
    readRows: async (kind, place, relations) =>
      JSON.parse(
        await runPython(
          join(__dirname, 'rows.py'),
          [kind, place, ...relations],
          [kind === 'duckdb' ? kind : 'psycopg2'],
        ),
      ),
  }
}
