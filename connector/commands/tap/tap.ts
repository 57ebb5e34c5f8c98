import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import { command, type Given, type Io, Stopped } from '../../cdk/cli'
import { configFailure } from '../../cdk/failure'
import { readJson, readStateFile } from '../../cdk/file'
import { describeStream, discovery } from '../../cdk/singer/discover'
import { type Entry, metric } from '../../cdk/singer/log'
import { type Asked, readCatalog } from '../../cdk/singer/selection'
import { readState, type SingerState } from '../../cdk/singer/state'
import { sourceSpec } from '../../config'
import { inFile, loadConfigs, orStop, runOrStop } from '../../load'
import { streams } from '../../streams'
import { streamsOf, type Wired, wire } from '../../wire'
import { about, aboutMarkdown, type Program } from '../about'
import { packageVersion } from '../version'
import { logger, logging } from './logger'
import { sync } from './sync'
import { tryStreams } from './try-streams'

const name = 'tap-feedback'

const program: Program = {
  name,
  description: 'Singer tap for the Feedback Data Service',
  capabilities: ['catalog', 'properties', 'discover', 'state', 'about', 'structured-logging'],
  spec: sourceSpec,
  prefix: 'TAP_FEEDBACK',
}

/** The text of an option; options that may come more than once give their last. */
const text = ({ options }: Given, option: string): string | undefined => {
  const last = [options[option] ?? []].flat().at(-1)
  return typeof last === 'string' ? last : undefined
}

/** What the catalog in a file asks for; every stream without one. */
const loadAsked = async (path: string | undefined, streams: Wired['streams']): Promise<Asked> => {
  const read = readCatalog(streams)
  if (path === undefined) return orStop(read({ streams: streams.map(describeStream) }))
  const asked = orStop(pipe(read(await runOrStop(readJson('catalog', path))), E.mapLeft(inFile(path))))
  if (asked.catalog.length === 0)
    throw new Stopped(configFailure(`${path}: The catalog selects no stream. Set "selected": true for at least one.`))
  return asked
}

const loadState = async (path: string | undefined): Promise<SingerState> =>
  orStop(
    path === undefined
      ? readState(null)
      : pipe(readState(await runOrStop(readStateFile(path))), E.mapLeft(inFile(path))),
  )

const inseparable = ({ inseparable: [one, ...more] }: Asked): ReadonlyArray<Entry> =>
  one === undefined
    ? []
    : [
        {
          level: 'warn',
          message: `${one}${more.length === 0 ? ' is' : ` and ${more.length} more are`} deselected inside a selected attribute and will be sent with it: only whole top-level attributes can be left out.`,
        },
      ]

const configPaths = ({ options }: Given): ReadonlyArray<string> => [options.config ?? []].flat().map(String)

const deletedAt = '_sdc_deleted_at'

const run = async (plain: Io, given: Given): Promise<number> => {
  const log = logger(plain, name)
  const io = logging(plain, log)
  const paths = configPaths(given)
  if (paths.length === 0) throw new Stopped(configFailure('--config is missing: give a file, or ENV.'))
  const config = await loadConfigs(io, paths, program.prefix)
  const wired = orStop(
    wire(config, {
      deletedAt,
      onRequest: ({ operation, status, millis }) =>
        log(metric('timer', 'http_request_duration', millis / 1000, { endpoint: operation, http_status_code: status })),
    }),
  )
  const asked = await loadAsked(text(given, 'catalog') ?? text(given, 'properties'), wired.streams)
  const state = await loadState(text(given, 'state'))
  inseparable(asked).forEach(log)
  const good =
    given.options.test === true
      ? await tryStreams(io, wired, asked, state, log)
      : (await sync(io, wired, asked, state, log)) !== 'failed'
  await wired.close()
  return good ? 0 : 1
}

/** Without a config, or with one that is not complete yet, the streams as no config shapes them. */
const discovered = async (io: Io, given: Given): Promise<Wired['streams']> => {
  const paths = configPaths(given)
  if (paths.length === 0) return streams
  const config = await loadConfigs(io, paths, program.prefix).catch((error: unknown) => {
    if (error instanceof Stopped) return undefined
    throw error
  })
  return config === undefined ? streams : orStop(streamsOf(config, deletedAt))
}

export const tap = command({
  name: '',
  summary: 'Singer tap for the Feedback Data Service: prints the selected streams as Singer messages.',
  options: {
    config: { type: 'string', value: 'FILE|ENV', multiple: true, help: 'The configuration, JSON; ENV: TAP_FEEDBACK_…' },
    catalog: { type: 'string', value: 'FILE', help: 'The catalog with its selection; left out, every stream is read' },
    properties: { type: 'string', value: 'FILE', help: 'The older name of --catalog' },
    state: { type: 'string', value: 'FILE', help: 'The state to go on from; left out, everything is read' },
    discover: { type: 'boolean', help: 'Print the catalog of all streams' },
    test: { type: 'boolean', help: 'Print one record of each stream' },
    about: { type: 'boolean', help: 'Tell name, version, capabilities and settings' },
    format: { type: 'string', value: 'FORMAT', help: 'Form of --about: text, json or markdown' },
    version: { type: 'boolean', help: 'Tell the version' },
  },
  notes: 'More than one --config: the later goes over the earlier, such as --config config.json --config ENV.',
  examples: [
    'tap-feedback --config config.json --discover > catalog.json',
    'tap-feedback --config config.json --catalog catalog.json --state state.json',
  ],
  run: async (io, given) => {
    const { options } = given
    if (options.version === true) {
      await io.print(`${name} ${packageVersion()}\n`)
      return 0
    }
    if (options.about === true) {
      const format = text(given, 'format') ?? 'text'
      if (!['text', 'json', 'markdown'].includes(format))
        throw new Stopped(configFailure('--format is wrong. Give text, json or markdown.'))
      const version = packageVersion()
      await io.print(
        format === 'json' ? `${JSON.stringify(about(program, version), null, 2)}\n` : aboutMarkdown(program, version),
      )
      return 0
    }
    if (options.discover === true) {
      await io.print(discovery(await discovered(io, given)))
      return 0
    }
    return run(io, given)
  },
})
