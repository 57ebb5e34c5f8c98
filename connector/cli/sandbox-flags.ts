import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import { type CommandOption, defined } from '../cdk'
import {
  exportOrders,
  faultKinds,
  isOperationName,
  type OperationName,
  operationNames,
  parseFaultList,
  type SandboxOptions,
  trends,
} from '../sandbox'
import { parseMemorySize } from '../snapshot'

/**
 * An option of the command line. `read` returns the sandbox options for its text, or (left) a description of valid
 * text.
 */
type SandboxFlag = {
  readonly value: string
  readonly help: string
  readonly read: (text: string) => E.Either<string, SandboxOptions>
}

const readWholeNumber =
  (min: number, max: number, toOptions: (value: number) => SandboxOptions): SandboxFlag['read'] =>
  (text) =>
    /^\d{1,12}$/.test(text) && Number(text) >= min && Number(text) <= max
      ? E.right(toOptions(Number(text)))
      : E.left(`a whole number from ${min} to ${max}`)

const readPattern =
  (pattern: RegExp, expected: string, toOptions: (parts: RegExpExecArray) => SandboxOptions): SandboxFlag['read'] =>
  (text) =>
    pipe(pattern.exec(text), E.fromNullable(expected), E.map(toOptions))

const readOperationNames = (text: string): E.Either<string, ReadonlyArray<OperationName>> => {
  const names = text.split(',')
  return names.every(isOperationName)
    ? E.right(names.filter(isOperationName))
    : E.left(`names among ${operationNames.join(', ')}`)
}

/** In the order of the help. */
export const sandboxFlags: Readonly<Record<string, SandboxFlag>> = {
  port: {
    value: 'N',
    help: 'Port to listen on; 0, the default, means any free port',
    read: readWholeNumber(0, 65_535, (port) => ({ port })),
  },
  host: { value: 'NAME', help: 'Address to listen on, default 127.0.0.1', read: (host) => E.right({ host }) },
  reviews: {
    value: 'N',
    help: 'Number of reviews at the start, default 1000',
    read: readWholeNumber(0, 5_000_000, (reviews) => ({ reviews })),
  },
  seed: {
    value: 'N',
    help: 'The same seed gives the same data and the same faults, default 7',
    read: readWholeNumber(0, 1_000_000, (seed) => ({ seed })),
  },
  until: {
    value: 'TIME',
    help: 'Newest time in the data, default a minute ago; set it to get the same data every day',
    read: (text) =>
      Number.isNaN(Date.parse(text))
        ? E.left('an ISO 8601 time such as 2026-01-01T00:00:00Z')
        : E.right({ until: Date.parse(text) }),
  },
  years: {
    value: 'N',
    help: 'Number of years that the reviews cover, default 3',
    read: readWholeNumber(1, 50, (years) => ({ years })),
  },
  trend: {
    value: 'KIND',
    help: 'none: months differ by chance alone; planted: the last full month has known changes; default neither',
    read: (text) =>
      pipe(
        trends.find((trend) => trend === text),
        E.fromNullable(`one of ${trends.join(', ')}`),
        E.map((trend) => ({ trend })),
      ),
  },
  locations: {
    value: 'N',
    help: 'Number of locations, default 40',
    read: readWholeNumber(1, 10_000, (locations) => ({ locations })),
  },
  providers: {
    value: 'N',
    help: 'Number of providers, default 200',
    read: readWholeNumber(1, 100_000, (providers) => ({ providers })),
  },
  batch: {
    value: 'N',
    help: 'Number of successive reviews with the same modifiedTime after a bulk change, default 40',
    read: readWholeNumber(1, 1_000_000, (batch) => ({ batch })),
  },
  db: {
    value: 'FILE',
    help: 'Keeps the data in this file; data that is already there is served, and the options above have no effect',
    read: readPattern(/^.+$/s, 'the path of a file, not empty', ([db]) => ({ db })),
  },
  from: {
    value: 'FILE',
    help: 'Serves a snapshot made by feedback snapshot or feedback sync instead of generated reviews',
    read: (from) => E.right({ from }),
  },
  'memory-limit': {
    value: 'SIZE',
    help: 'Maximum memory for the data, such as 512MB; the rest goes to disk; not limited if left out',
    read: (text) => {
      const memoryLimit = parseMemorySize(text)
      return memoryLimit === undefined
        ? E.left('a size of at least 16MB, such as 512MB or 1GiB')
        : E.right({ memoryLimit })
    },
  },
  order: {
    value: 'ORDER',
    help:
      `Order of the exports: ${exportOrders.join(', ')}; ties is ` +
      'a new random order among equal times for every request',
    read: (text) =>
      pipe(
        exportOrders.find((order) => order === text),
        E.fromNullable(`one of ${exportOrders.join(', ')}`),
        E.map((order) => ({ order })),
      ),
  },
  churn: {
    value: 'COUNTS',
    help: 'Changes after every page of reviews, such as change=3,delete=1,add=1,restore=1',
    read: readPattern(
      /^(?:change|delete|add|restore)=\d{1,6}(?:,(?:change|delete|add|restore)=\d{1,6})*$/,
      'counts such as change=3,delete=1,add=1',
      ([text]) => ({
        churn: Object.fromEntries(
          text
            .split(',')
            .map((part) => part.split('='))
            .map(([name, count]) => [name, Number(count)]),
        ),
      }),
    ),
  },
  fail: {
    value: 'N=KIND,…',
    help: 'The Nth request to the two exports, counted together, fails once',
    read: (text) =>
      pipe(
        parseFaultList(text),
        E.bimap(
          (problem) => `N=KIND,… (${problem})`,
          (faults) => ({ faults }),
        ),
      ),
  },
  latency: {
    value: 'MS[-MS]',
    help: 'Delay of every answer in milliseconds, or its range',
    read: readPattern(/^(\d{1,6})(?:-(\d{1,6}))?$/, 'milliseconds such as 200 or 50-400', ([, min, max = min]) => ({
      latency: { minMs: Number(min), maxMs: Math.max(Number(min), Number(max)) },
    })),
  },
  'rate-limit': {
    value: 'N[/SECONDS]',
    help: 'Maximum requests per minute, or per SECONDS; further ones get a 429 with Retry-After',
    read: readPattern(/^(\d{1,6})(?:\/(\d{1,6}))?$/, 'a number such as 60 or 10/5', ([, requests, seconds = 60]) => ({
      rate: { requests: Number(requests), seconds: Number(seconds) },
    })),
  },
  like: {
    value: 'KIND',
    help: 'specification (the default), or published: like deployments where the specification is silent, see below',
    read: readPattern(/^(specification|published)$/, 'specification or published', ([kind]) => ({
      like: kind === 'published' ? 'published' : 'specification',
    })),
  },
  'seconds-per-request': {
    value: 'SECONDS',
    help: 'Seconds by which each request moves the clock of the service forward, default 0',
    read: readPattern(/^\d{1,6}(?:\.\d{1,3})?$/, 'seconds such as 10', ([seconds]) => ({
      secondsPerRequest: Number(seconds),
    })),
  },
  'clock-skew': {
    value: 'SECONDS',
    help: 'How far the Date header is ahead of the clock for modification times; may be negative',
    read: readPattern(/^-?\d{1,8}$/, 'seconds such as 90 or -3600', ([seconds]) => ({
      clockSkew: Number(seconds) * 1000,
    })),
  },
  'token-ttl': {
    value: 'SECONDS',
    help: 'Lifetime of an exchanged token, default 3600',
    read: readWholeNumber(1, 1_000_000_000, (tokenLifetime) => ({ tokenLifetime })),
  },
  deny: {
    value: 'OPERATIONS',
    help: 'Operations that the tokens of the application may not call (403)',
    read: (text) =>
      pipe(
        readOperationNames(text),
        E.map((denied) => ({ denied })),
      ),
  },
  grant: {
    value: 'TOKEN=OPERATIONS',
    help: 'Another token, and the operations that it may call',
    read: (text) => {
      const [token = '', names = ''] = text.split('=')
      return token === ''
        ? E.left('TOKEN=OPERATIONS')
        : pipe(
            readOperationNames(names),
            E.map((granted) => ({ granted: new Map([[token, granted]]) })),
          )
    },
  },
  'max-ids': {
    value: 'N',
    help: 'Maximum identifiers per request for comments, default 50; more get a 413',
    read: readWholeNumber(1, 100_000, (identifiers) => ({ limits: { maxIdentifiers: identifiers } })),
  },
  'max-per-page': {
    value: 'N',
    help: 'Maximum rows per page of operations 1 to 3, default 100; the filter echo has the applied limit',
    read: readWholeNumber(1, 100_000, (perPage) => ({ limits: { maxPerPage: perPage } })),
  },
}

/** The options as a command declares them. */
export const sandboxFlagOptions: Readonly<Record<string, CommandOption & { readonly type: 'string' }>> =
  Object.fromEntries(
    Object.entries(sandboxFlags).map(([name, { value, help }]) => [name, { type: 'string', value, help }]),
  )

/** Merges the options of two flags: limits and faults are combined; any other key occurs only once. */
const mergeOptions = (a: SandboxOptions, b: SandboxOptions): SandboxOptions => ({
  ...a,
  ...b,
  ...defined({
    limits: a.limits === undefined ? b.limits : { ...a.limits, ...b.limits },
    faults: a.faults === undefined ? b.faults : [...a.faults, ...(b.faults ?? [])],
  }),
})

/** The sandbox options of all flags together, or (left) the first wrong flag with a description of a valid value. */
export const readSandboxFlags = (
  texts: Readonly<Record<string, string | undefined>>,
): E.Either<string, SandboxOptions> =>
  Object.entries(sandboxFlags).reduce<E.Either<string, SandboxOptions>>((merged, [name, flag]) => {
    const text = texts[name]
    if (E.isLeft(merged) || text === undefined) return merged
    return pipe(
      flag.read(text),
      E.bimap(
        (expected) => `--${name} is wrong: give ${expected}`,
        (options) => mergeOptions(merged.right, options),
      ),
    )
  }, E.right({}))

/** A line of help for each kind of fault. */
export const faultHelp: ReadonlyArray<string> = Object.entries(faultKinds).map(
  ([kind, meaning]) => `  ${kind.padEnd(12)}${meaning}`,
)
