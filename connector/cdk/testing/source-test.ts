import { fork } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { printExactJson } from '../json/exact'
import { createRedactor, findSecrets } from '../redact'
import { checkEvents } from './check-events'
import { membersOf } from './differences'
import { testedProtocols } from './events'

/** What a read printed. */
export type SourceRun = {
  /** By stream, in order of arrival; integers beyond 2^53 are bigints. A stream without records has an empty list. */
  readonly records: Readonly<Record<string, ReadonlyArray<Readonly<Record<string, unknown>>>>>
  /** The state from which the next read of the same protocol continues. */
  readonly state: unknown
  /** What it logged on stderr. */
  readonly log: string
}

/** A source to be tested with one configuration. */
export type SourceTest = {
  /** The result of the verb `check`. */
  readonly check: () => Promise<{ readonly succeeded: boolean; readonly message: string }>
  /**
   * Reads all streams that the source discovers, incrementally if they allow it. `state`: from an earlier read. Throws
   * an error with all problems if the run fails, violates its protocol or its catalog, or prints a secret of its
   * configuration.
   */
  readonly read: (protocol: keyof typeof testedProtocols, state?: unknown) => Promise<SourceRun>
}

/** A source that hangs is killed after this time, in milliseconds. */
const runTimeout = 300_000

type Ended = { readonly status: number | string; readonly stdout: string; readonly log: string }

/** Runs the source. Each file exists only for this run, and the option of the same name points to it. */
const runFile = async (
  path: string,
  args: ReadonlyArray<string>,
  files: Readonly<Record<string, unknown>>,
): Promise<Ended> => {
  const folder = mkdtempSync(join(tmpdir(), 'source-test-'))
  try {
    const options = Object.entries(files).flatMap(([name, value]) => {
      const file = join(folder, `${name}.json`)
      writeFileSync(file, printExactJson(value), { mode: 0o600 })
      return [`--${name}`, file]
    })
    const child = fork(path, [...args, ...options], { silent: true, execArgv: [], timeout: runTimeout })
    const ended = new Promise<number | string>((resolve, reject) => {
      child.on('error', reject)
      child.on('close', (status, signal) => resolve(status ?? signal ?? 'unknown'))
    })
    const outputs = [child.stdout, child.stderr].map((output) => (output === null ? '' : text(output)))
    const [status, stdout = '', log = ''] = await Promise.all([ended, ...outputs])
    return { status, stdout: String(stdout), log: String(log) }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const linesOf = (stdout: string): ReadonlyArray<string> => stdout.split('\n').filter((line) => line !== '')

/** The maximum number of problems shown. Each is shown once, because a wrong schema is wrong in every record. */
const shownProblems = 20

const throwProblems = (run: string, found: ReadonlyArray<string>, log: string): void => {
  const problems = [...new Set(found)]
  if (problems.length === 0) return
  const more = problems.length - shownProblems
  throw new Error(
    [
      `${run}:`,
      ...problems.slice(0, shownProblems).map((problem) => `- ${problem}`),
      ...(more > 0 ? [`- and ${more} more`] : []),
      ...(log === '' ? [] : ['It logged:', ...log.trim().split('\n').slice(-10)]),
    ].join('\n'),
  )
}

/** Tests the source in the JavaScript file at `path`, such as `build/articles.js`, with a configuration. */
export const createSourceTest = (path: string, config: object): SourceTest => {
  const run = async (
    args: ReadonlyArray<string>,
    files: Readonly<Record<string, unknown>> = { config },
  ): Promise<Ended> => {
    const ended = await runFile(path, args, files)
    throwProblems(args.join(' ') || 'the tap', ended.status === 0 ? [] : [`it ended with ${ended.status}`], ended.log)
    return ended
  }
  const readMembers = async (verb: string, member: string, files?: Readonly<Record<string, unknown>>) => {
    const { stdout } = await run([verb], files)
    return membersOf(linesOf(stdout).flatMap((line) => membersOf(JSON.parse(line))[member] ?? [])[0])
  }
  const readSecrets = async (): Promise<ReadonlyArray<string>> => {
    const { connectionSpecification } = await readMembers('spec', 'spec', {})
    return findSecrets(membersOf(connectionSpecification), config)
  }
  return {
    check: async () => {
      const { status, message } = await readMembers('check', 'connectionStatus')
      return { succeeded: status === 'SUCCEEDED', message: String(message ?? '') }
    },
    read: async (name, state) => {
      const protocol = testedProtocols[name]
      const { stdout } = await run(protocol.discoverArgs)
      const catalog = protocol.readCatalog(stdout)
      const files = { config, ...protocol.configure(stdout), ...(state === undefined ? {} : { state }) }
      const ended = await runFile(path, protocol.readArgs, files)
      const events = linesOf(ended.stdout).map(protocol.readLine)
      const { problems, records, states } = checkEvents(events, catalog, protocol.hasStatuses)
      const failure = ended.status === 0 ? [] : [`it ended with ${ended.status}`]
      const secrets = await readSecrets()
      const leak = secrets.some((secret) => `${ended.stdout}${ended.log}`.includes(secret))
      const redact = createRedactor(secrets)
      throwProblems(
        `A read over ${name}`,
        [...failure, ...problems.map(redact), ...(leak ? ['it printed a secret of the config'] : [])],
        redact(ended.log),
      )
      return { records: Object.fromEntries(records), state: protocol.joinStates(states, state), log: ended.log }
    },
  }
}
