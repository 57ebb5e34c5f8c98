import type { TaskEither } from 'fp-ts/TaskEither'
import type * as t from 'io-ts'
import { createAirbyteSourceCommands } from './airbyte/source-commands'
import { createConfigFormat } from './config/format'
import type { Failure } from './failure'
import type { Command } from './program/command'
import { runOrThrow } from './program/error'
import { airbyteConventions, singerConventions } from './program/exit'
import { runProgram } from './program/program'
import { createTapCommand } from './singer/tap-command'
import type { ConnectOptions, SourceProgram } from './source-program'
import type { Stream } from './stream'

/** A source whose streams need no settings: what it reads, and how it connects. */
export type SourceDeclaration<Config, Env> = {
  /** Letters, digits and underscores: its programs are `source-NAME` and `tap-NAME`. */
  readonly name: string
  /** What it reads, as in "Airbyte source for WHAT". */
  readonly subject: string
  readonly version: string
  readonly documentationUrl: string
  /** Fields of `config-fields.ts`; its JSON schema is the form that platforms draw. */
  readonly config: t.Type<Config, unknown>
  /** In reading order. */
  readonly streams: ReadonlyArray<Stream<Env>>
  /**
   * What the streams' readers read from. `stop` is aborted when the run is stopped; the environment's `variables` may
   * name proxies.
   */
  readonly connect: (config: Config, stop: AbortSignal, variables: ConnectOptions['variables']) => Env
  /** A request that shows that the config works. */
  readonly check: (env: Env) => TaskEither<Failure, unknown>
}

const toSourceProgram = <Config, Env>(source: SourceDeclaration<Config, Env>): SourceProgram<Config, Env> => ({
  name: source.name,
  subject: source.subject,
  version: () => source.version,
  format: createConfigFormat(source.config, { title: source.subject, documentationUrl: source.documentationUrl }),
  listStreams: async () => source.streams,
  connect: async (_protocol, config, { stop, variables }) => ({
    streams: source.streams,
    env: source.connect(config, stop, variables),
  }),
  check: async (config, stop, variables) => {
    await runOrThrow(source.check(source.connect(config, stop, variables)))
    return { warnings: [], findings: [] }
  },
})

/** The tap's help also lists the verbs of the source, since one executable is both. */
const describeBoth = (tap: Command, name: string, verbs: Readonly<Record<string, Command>>): Command => ({
  ...tap,
  notes: [
    ...(tap.notes === undefined ? [] : [tap.notes, '']),
    'With one of these verbs as its first argument it is an Airbyte source:',
    ...Object.entries(verbs).map(([verb, { summary }]) => `  ${verb.padEnd(10)}${summary}`),
    '',
    `${name} VERB --help prints the options of a verb.`,
  ].join('\n'),
})

/**
 * Runs a source in this process: as an Airbyte source if its first argument is an Airbyte verb, otherwise as a Singer
 * tap.
 */
export const runSource = <Config, Env>(source: SourceDeclaration<Config, Env>, host: NodeJS.Process): void => {
  const program = toSourceProgram(source)
  const { version } = program
  const verbs = createAirbyteSourceCommands(program)
  if (Object.hasOwn(verbs, host.argv[2] ?? '')) {
    const commands = Object.fromEntries(Object.entries(verbs).map(([verb, command]) => [verb, async () => command]))
    const summary = `Airbyte source for ${source.subject}`
    runProgram(`source-${source.name}`, { ...airbyteConventions, summary, version, commands }, host)
  } else {
    const command = describeBoth(createTapCommand(program), `source-${source.name}`, verbs)
    const summary = `Singer tap for ${source.subject}`
    const commands = { '': async () => command }
    runProgram(`tap-${source.name}`, { ...singerConventions, summary, version, commands }, host)
  }
}
