import { writeFileSync } from 'node:fs'
import type { Readable } from 'node:stream'
import { createConsumer, type Row, type RunOutput } from './consumer'
import type { Violation } from './oracles'
import type { Owner } from './realm'
import { mustComplete, type Scenario } from './scenario'
import type { SimulatedService } from './service'

/** What surrounds a program in its world: the service that it talks to, and the platform that starts it. */
export type Platform = {
  readonly service: SimulatedService
  /** Writes the files of another run, and returns what the program gets and where its output goes. */
  readonly open: (run: RunPlan) => OpenRun
  /** After the last run: what is missing, doubled or wrong; `now` by the clock that stamps rows. */
  readonly compare: (now: number) => Findings
}

type Findings = ReadonlyArray<Violation> | Promise<ReadonlyArray<Violation>>

export type RunPlan = {
  /** Counted from 0. */
  readonly index: number
  readonly isQuiet: boolean
  /** The address of the service and the credentials, as keys of the config. */
  readonly connection: object
  /** The faults that the runs before have left. */
  readonly armed: number
  /** The time by the clock that stamps rows, and how far the program's own is ahead of it; milliseconds. */
  readonly now: number
  readonly localOffset: number
}

export type OpenRun = {
  readonly args: ReadonlyArray<string>
  /** What the program reads from stdin. */
  readonly input?: RunInput
  readonly take: (bytes: Buffer) => void
  readonly output: () => RunOutput
  /** The run has to succeed. */
  readonly mustComplete: boolean
  /** What is wrong with the run, now that it has ended. */
  readonly check?: (end: RunEnd) => Findings
}

export type RunEnd = {
  /** NaN: it ended by a signal. */
  readonly status: number
  readonly stderr: string
  /** The reader of its output went away. */
  readonly isOutputClosed: boolean
  /** How many requests it has sent, and records. */
  readonly requests: number
  readonly records: number
}

/** A pipe that a program reads from. */
export type RunInput = {
  readonly open: (owner: Owner) => Readable
  /** The writer goes away. */
  readonly close: () => void
  /** From now on the writer pauses so long before each piece, milliseconds. */
  readonly slowDown: (pause: number) => void
}

/** The protocol of a source, and the catalog that selects the streams of a run. */
export type SourceProtocol = {
  readonly protocol: 'airbyte' | 'singer'
  readonly catalog: (run: number) => unknown
}

/** A platform with a source: keeps its rows and states, and gives it the last state. */
export const createSourcePlatform = (
  scenario: Scenario,
  service: SimulatedService,
  { protocol, catalog }: SourceProtocol,
  tables: {
    /** Takes a row that a state covers. */
    readonly keep: (row: Row) => void
    /** Called with each row as soon as it is read. */
    readonly noteRow?: (row: Row) => void
    /** Called with each stream's state once the rows that it covers were taken. */
    readonly noteState?: (stream: string, state: unknown) => void
    /** Starts another run. The result reports what is wrong with it. */
    readonly open?: (run: RunPlan) => OpenRun['check']
    readonly compare: Platform['compare']
  },
  report: (oracle: string, what: string) => void,
): Platform => {
  const consumer = createConsumer(protocol, report, tables.keep, tables.noteRow, tables.noteState)
  const firstStates: unknown[] = []
  return {
    service,
    open: (plan) => {
      const { index, isQuiet, connection, armed } = plan
      firstStates[index] = copy(consumer.state())
      const state = (scenario.apart ?? [])
        .filter(({ run, stateOf }) => run === index && stateOf !== undefined)
        .reduce((all, { stream, stateOf = 0 }) => putBack(all, stream, firstStates[stateOf]), firstStates[index])
      writeFileSync('catalog.json', JSON.stringify(catalog(index)))
      writeFileSync('config.json', JSON.stringify({ ...scenario.config, ...connection }))
      if (state !== undefined) writeFileSync('state.json', JSON.stringify(state))
      return {
        ...consumer.open(),
        args: [
          ...(protocol === 'airbyte' ? ['read'] : []),
          ...['--config', 'config.json', '--catalog', 'catalog.json'],
          ...(state === undefined ? [] : ['--state', 'state.json']),
        ],
        mustComplete: isQuiet || mustComplete(scenario, index, armed),
        check: tables.open?.(plan) ?? (() => []),
      }
    },
    compare: tables.compare,
  }
}

const copy = (state: unknown): unknown => (state === undefined ? undefined : JSON.parse(JSON.stringify(state)))

type AirbyteStates = ReadonlyArray<{ readonly stream: { readonly stream_descriptor: { readonly name: string } } }>
type SingerState = { readonly bookmarks?: Readonly<Record<string, unknown>> }

/** The states, with that of one stream from older ones, which may lack it. */
const putBack = (states: unknown, stream: string, older: unknown): unknown => {
  if (states === undefined) return undefined
  if (Array.isArray(states)) {
    const isOther = ({ stream: { stream_descriptor: it } }: AirbyteStates[number]): boolean => it.name !== stream
    const old = (older ?? []) as AirbyteStates
    return [...(states as AirbyteStates).filter(isOther), ...old.filter((state) => !isOther(state))]
  }
  const { [stream]: _, ...others } = (states as SingerState).bookmarks ?? {}
  const old = (older as SingerState | undefined)?.bookmarks?.[stream]
  return { ...states, bookmarks: { ...others, ...(old === undefined ? {} : { [stream]: old }) } }
}
