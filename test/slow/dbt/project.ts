import { spawn } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Sandbox } from '../../../connector/sandbox/start'
import manifest from '../../../package.json'
import { docsFolder, fillIn } from '../../support/doc-blocks'
import { pythonProgram, requireOutput, runShellOrThrow } from '../interop/shell'
import type { Postgres } from './postgres'

export const packageFolder = join(__dirname, '..', '..', '..', 'dbt')

export type Row = Readonly<Record<string, string | number | boolean | null>>
export type Relations = Readonly<Record<string, ReadonlyArray<Row>>>

/** The project that docs/dbt.md makes. */
export type Project = {
  readonly folder: string
  /** Runs the shell commands under a heading of the page; returns what they print. */
  readonly runSection: (heading: string) => Promise<string>
  readonly dbt: (...args: ReadonlyArray<string>) => Promise<string>
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
    readFileSync(join(docsFolder, 'dbt.md'), 'utf8')
      .split(/^## /m)
      .map((section) => [
        section.slice(0, section.indexOf('\n')),
        [...section.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map(([, text = '']) => fillIn(text, sandbox)).join('\n'),
      ]),
  )

/** Starts a process that runs dbt for a list of arguments, one list at a time; it ends with this process. */
const startDbt = (cwd: string, env: Readonly<Record<string, string | undefined>>): Project['dbt'] => {
  const server = spawn(pythonProgram('dbt', 'python'), [join(__dirname, 'serve_dbt.py')], {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const answers = createInterface(server.stdout)[Symbol.asyncIterator]()
  return async (...args) => {
    server.stdin.write(`${JSON.stringify(args)}\n`)
    const { value, done } = await answers.next()
    if (done) throw new Error(`dbt ${args.join(' ')} has ended without an answer`)
    return requireOutput(`dbt ${args.join(' ')}`, JSON.parse(value))
  }
}

/** Prepares the page's commands: the package as a git repository, and programs on the path. `folder` holds reviews.duckdb and config.json. */
export const createProject = async (sandbox: Sandbox, postgres: Postgres, folder: string): Promise<Project> => {
  const git = join(folder, 'git')
  mkdirSync(git)
  cpSync(packageFolder, join(git, 'dbt'), { recursive: true })
  const commit = `git init -q . && git add . && git -c user.name=t -c user.email=t@example.com commit -qm Package && git tag v${manifest.version}`
  await runShellOrThrow('bash', ['-c', commit], { cwd: git })
  const env = {
    ...postgres.env,
    FEEDBACK_GIT: `file://${git}`,
    DBT_SEND_ANONYMOUS_USAGE_STATS: 'false',
    DBT_USE_COLORS: 'false',
    PATH: [
      join(packageFolder, '..', 'node_modules', '.bin'),
      join(pythonProgram('dbt', 'dbt'), '..'),
      process.env.PATH,
    ].join(':'),
  }
  const how = { cwd: folder, env }
  const blocks = sections(sandbox)
  return {
    folder,
    runSection: (heading) => {
      const text = blocks.get(heading)
      if (text === undefined || text === '') throw new Error(`docs/dbt.md has no commands under ${heading}`)
      return runShellOrThrow('bash', ['-c', `set -euo pipefail\n${text}`], how)
    },
    dbt: startDbt(folder, env),
    readRows: async (kind, place, relations) =>
      JSON.parse(
        await runShellOrThrow(
          pythonProgram('dbt', 'python'),
          [join(__dirname, 'rows.py'), kind, place, ...relations],
          how,
        ),
      ),
  }
}
