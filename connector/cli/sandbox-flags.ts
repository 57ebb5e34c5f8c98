import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import type { CommandOption } from '../cdk'
import {
  exportOrders,
  faultKinds,
  isOperationName,
  type OperationName,
  operationNames,
  parseFaultList,
  type SandboxOptions,
} from '../sandbox'

/** An option of the command line: what it says, and what it means; a text it cannot read is answered by what would be right. */
type SandboxFlag = {
  readonly value: string
  readonly help: string
  readonly read: (text: string) => E.Either<string, SandboxOptions>
}

const readWholeNumber =
  (least: number, most: number, meant: (value: number) => SandboxOptions): SandboxFlag['read'] =>
  (text) =>
    /^\d{1,12}$/.test(text) && Number(text) >= least && Number(text) <= most
      ? E.right(meant(Number(text)))
      : E.left(`a whole number from ${least} to ${most}`)

const readPattern =
  (pattern: RegExp, right: string, meant: (parts: RegExpExecArray) => SandboxOptions): SandboxFlag['read'] =>
  (text) =>
    pipe(pattern.exec(text), E.fromNullable(right), E.map(meant))

const readOperationNames = (text: string): E.Either<string, ReadonlyArray<OperationName>> => {
  const names = text.split(',')
  return names.every(isOperationName)
    ? E.right(names.filter(isOperationName))
    : E.left(`names among ${operationNames.join(', ')}`)
}

/** In the order of the help: the data first. */
export const sandboxFlags: Readonly<Record<string, SandboxFlag>> = {
  port: {
    value: 'N',
    help: 'port to listen on; 0, the default, takes any that is free',
    read: readWholeNumber(0, 65_535, (port) => ({ port })),
  },
  host: { value: 'NAME', help: 'address to listen on, default 127.0.0.1', read: (host) => E.right({ host }) },
  reviews: {
    value: 'N',
    help: 'how many reviews there are at the start, default 1000',
    read: readWholeNumber(0, 5_000_000, (reviews) => ({ reviews })),
  },
  seed: {
    value: 'N',
    help: 'the same seed gives the same data and the same faults, default 7',
    read: readWholeNumber(0, 1_000_000, (seed) => ({ seed })),
  },
  until: {
    value: 'TIME',
    help: 'the newest time in the data, default a minute ago; give it for data that is the same every day',
    read: (text) =>
      Number.isNaN(Date.parse(text))
        ? E.left('an ISO 8601 time such as 2026-01-01T00:00:00Z')
        : E.right({ until: Date.parse(text) }),
  },
  years: {
    value: 'N',
    help: 'over how many years the reviews are spread, default 3',
    read: readWholeNumber(1, 50, (years) => ({ years })),
  },
  locations: {
    value: 'N',
    help: 'how many locations there are, default 40',
    read: readWholeNumber(1, 10_000, (locations) => ({ locations })),
  },
  providers: {
    value: 'N',
    help: 'how many providers there are, default 200',
    read: readWholeNumber(1, 100_000, (providers) => ({ providers })),
  },
  batch: {
    value: 'N',
    help: 'how many successive reviews a bulk change gives one modifiedTime, default 40',
    read: readWholeNumber(1, 1_000_000, (batch) => ({ batch })),
  },
  db: {
    value: 'FILE',
    help: 'keeps the data in this file; if it holds data already, that is served and the options above mean nothing',
    read: (db) => E.right({ db }),
  },
  from: {
    value: 'FILE',
    help: 'serves a snapshot made by feedback snapshot or feedback sync instead of made-up reviews',
    read: (from) => E.right({ from }),
  },
  order: {
    value: 'ORDER',
    help: `order of the exports: ${exportOrders.join(', ')}; ties is a new random order among equal times at every request`,
    read: (text) =>
      pipe(
        exportOrders.find((order) => order === text),
        E.fromNullable(`one of ${exportOrders.join(', ')}`),
        E.map((order) => ({ order })),
      ),
  },
  churn: {
    value: 'COUNTS',
    help: 'what happens after every page of reviews, such as change=3,delete=1,add=1,restore=1',
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
    help: 'the Nth request of the two exports, counted together, fails once',
    read: (text) =>
      pipe(
        parseFaultList(text),
        E.bimap(
          (wrong) => `N=KIND,… (${wrong})`,
          (faults) => ({ faults }),
        ),
      ),
  },
  latency: {
    value: 'MS[-MS]',
    help: 'milliseconds before every answer, or between two numbers',
    read: readPattern(
      /^(\d{1,6})(?:-(\d{1,6}))?$/,
      'milliseconds such as 200 or 50-400',
      ([, least, most = least]) => ({
        latency: { minMs: Number(least), maxMs: Math.max(Number(least), Number(most)) },
      }),
    ),
  },
  'rate-limit': {
    value: 'N[/SECONDS]',
    help: 'requests in any minute, or in so many seconds; one more is answered 429 with Retry-After',
    read: readPattern(/^(\d{1,6})(?:\/(\d{1,6}))?$/, 'a number such as 60 or 10/5', ([, requests, seconds = 60]) => ({
      rate: { requests: Number(requests), seconds: Number(seconds) },
    })),
  },
  'clock-skew': {
    value: 'SECONDS',
    help: 'how far the Date header is ahead of the clock that stamps changes; may be negative',
    read: readPattern(/^-?\d{1,8}$/, 'seconds such as 90 or -3600', ([seconds]) => ({
      clockSkew: Number(seconds) * 1000,
    })),
  },
  'token-ttl': {
    value: 'SECONDS',
    help: 'how long an exchanged token lives, default 3600',
    read: readWholeNumber(1, 1_000_000_000, (tokenLifetime) => ({ tokenLifetime })),
  },
  deny: {
    value: 'OPERATIONS',
    help: 'what the tokens of the application may not call (403)',
    read: (text) =>
      pipe(
        readOperationNames(text),
        E.map((denied) => ({ denied })),
      ),
  },
  grant: {
    value: 'TOKEN=OPERATIONS',
    help: 'a further token, and all it may call',
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
    help: 'most identifiers in one request for comments, default 50; more are answered 413',
    read: readWholeNumber(1, 100_000, (identifiers) => ({ limits: { maxIdentifiers: identifiers } })),
  },
  'max-per-page': {
    value: 'N',
    help: 'most rows in a page of operations 1 to 3, default 100; the filter echo tells what was applied',
    read: readWholeNumber(1, 100_000, (perPage) => ({ limits: { maxPerPage: perPage } })),
  },
}

/** The flags as the command line wants them. */
export const sandboxFlagOptions: Readonly<Record<string, CommandOption>> = Object.fromEntries(
  Object.entries(sandboxFlags).map(([name, { value, help }]) => [name, { type: 'string', value, help }]),
)

const mergeOptions = (a: SandboxOptions, b: SandboxOptions): SandboxOptions => ({
  ...a,
  ...b,
  ...(a.limits === undefined && b.limits === undefined ? {} : { limits: { ...a.limits, ...b.limits } }),
  ...(a.faults === undefined && b.faults === undefined ? {} : { faults: [...(a.faults ?? []), ...(b.faults ?? [])] }),
})

/** What the given options mean together; or which is wrong, and what would be right. */
export const readSandboxFlags = (given: Readonly<Record<string, unknown>>): E.Either<string, SandboxOptions> =>
  Object.entries(sandboxFlags).reduce<E.Either<string, SandboxOptions>>((sum, [name, flag]) => {
    const text = given[name]
    if (E.isLeft(sum) || typeof text !== 'string') return sum
    return pipe(
      flag.read(text),
      E.bimap(
        (right) => `--${name} is wrong: give ${right}`,
        (options) => mergeOptions(sum.right, options),
      ),
    )
  }, E.right({}))

/** For the help: every kind of fault. */
export const faultHelp: ReadonlyArray<string> = Object.entries(faultKinds).map(
  ([kind, meaning]) => `  ${kind.padEnd(12)}${meaning}`,
)
