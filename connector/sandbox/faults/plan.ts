import * as E from 'fp-ts/Either'
import * as t from 'io-ts'
import { toDecodeError } from '../../api'
import { exportOperations, isOperationName, type OperationName, operationNames } from '../operations/operation'

/** The kinds of faults; the help of `feedback sandbox` prints each with its meaning. */
export const faultKinds = {
  '400': 'refused with the error body',
  '401': 'refused as if the token were wrong',
  '403': 'refused as if the token lacked permission',
  '413': 'refused as too large',
  '429': 'refused with Retry-After of retry_after seconds, or as a date with retry_after_date',
  '500': 'an error page in HTML',
  '502': 'an error page in HTML',
  '503': 'an error page in HTML, with Retry-After if retry_after is given',
  '504': 'an error page in HTML',
  reset: 'the connection breaks before an answer',
  truncated: 'the connection breaks in the middle of the body',
  cutjson: 'a complete answer whose JSON ends too early',
  hang: 'no answer at all',
  drip: 'one byte every delay_ms milliseconds',
  revoke: 'the token is refused from now on',
  html: 'an HTML page with status 200',
  contenttype: 'the right answer with Content-Type text/plain',
  application: 'an application error with status 200',
  stale: 'the previous answer of the same operation again',
  duplicate: 'the rows of the previous page with the filter echo of this one',
  clamp: 'a limit or perPage of at most `limit`, which the filter echo shows',
  unknown: 'attributes that the specification does not have',
  nulls: 'null for every attribute except keys and times',
} as const

export type FaultKind = keyof typeof faultKinds

const isFaultKind = (kind: string): kind is FaultKind => Object.hasOwn(faultKinds, kind)

/**
 * What goes wrong with one request: the kind, and the values that some kinds use. Times are in seconds (`retryAfter`)
 * or milliseconds (`delayMs`).
 */
export type Fault = {
  readonly kind: FaultKind
  readonly retryAfter: number | undefined
  readonly retryAfterDate: boolean
  readonly delayMs: number
  readonly limit: number
}

/** A fault and the requests that it affects. Request numbers count the requests of the rule's operations, from 1. */
export type FaultRule = Fault & {
  readonly operations: ReadonlyArray<OperationName>
  readonly requests: ReadonlyArray<number> | undefined
  readonly from: number
  readonly to: number
  readonly share: number
  readonly times: number
}

const RuleCodec = t.intersection([
  t.type({ kind: t.string }),
  t.partial({
    operation: t.union([t.string, t.readonlyArray(t.string)]),
    requests: t.readonlyArray(t.number),
    from: t.number,
    to: t.number,
    share: t.number,
    times: t.number,
    retry_after: t.number,
    retry_after_date: t.boolean,
    delay_ms: t.number,
    limit: t.number,
  }),
])

const ruleKeys = ['kind', ...Object.keys(RuleCodec.types[1].props)]

const decodeOperations = (names: ReadonlyArray<string>): E.Either<string, ReadonlyArray<OperationName>> => {
  const unknown = names.find((name) => name !== 'exports' && !isOperationName(name))
  return unknown === undefined
    ? E.right(names.flatMap((name) => (name === 'exports' ? exportOperations : isOperationName(name) ? [name] : [])))
    : E.left(`operation "${unknown}" is not one of exports, ${operationNames.join(', ')}`)
}

const ruleBounds = {
  from: [1, 1e9],
  to: [1, 1e9],
  share: [0, 1],
  times: [1, 1e9],
  retry_after: [0, 1e6],
  delay_ms: [1, 1e6],
  limit: [1, 1000],
} as const

const findBoundsProblem = (rule: t.TypeOf<typeof RuleCodec>): string | undefined => {
  if (rule.requests?.some((request) => !Number.isInteger(request) || request < 1) === true)
    return 'requests: expected whole numbers from 1 on'
  const name = (Object.keys(ruleBounds) as ReadonlyArray<keyof typeof ruleBounds>).find((key) => {
    const value = rule[key]
    return value !== undefined && !(value >= ruleBounds[key][0] && value <= ruleBounds[key][1])
  })
  return name === undefined ? undefined : `${name}: expected ${ruleBounds[name].join(' to ')}`
}

const decodeRule = (value: unknown): E.Either<string, FaultRule> => {
  const decoded = RuleCodec.decode(value)
  if (E.isLeft(decoded)) {
    const { path, message } = toDecodeError(decoded.left)
    return E.left(`${path}: ${message}`)
  }
  const rule = decoded.right
  const unknownKey = Object.keys(rule).find((key) => !ruleKeys.includes(key))
  if (unknownKey !== undefined) return E.left(`"${unknownKey}" is not one of ${ruleKeys.join(', ')}`)
  const fault = findBoundsProblem(rule)
  if (fault !== undefined) return E.left(fault)
  const { kind } = rule
  if (!isFaultKind(kind)) return E.left(`kind "${kind}" is not one of ${Object.keys(faultKinds).join(', ')}`)
  return E.map((operations: ReadonlyArray<OperationName>) => ({
    kind,
    operations,
    requests: rule.requests,
    from: rule.from ?? 1,
    to: rule.to ?? Number.POSITIVE_INFINITY,
    share: rule.share ?? 1,
    times: rule.times ?? Number.POSITIVE_INFINITY,
    retryAfter: rule.retry_after ?? (kind === '429' ? 1 : undefined),
    retryAfterDate: rule.retry_after_date ?? false,
    delayMs: rule.delay_ms ?? 1000,
    limit: rule.limit ?? 50,
  }))(decodeOperations([rule.operation ?? operationNames].flat()))
}

/** Decodes a plan of faults, a list of JSON objects. Left: which rule is wrong, and what is expected. */
export const decodeFaultPlan = (value: unknown): E.Either<string, ReadonlyArray<FaultRule>> => {
  if (!Array.isArray(value)) return E.left('a plan is a list of rules such as {"kind": "429", "requests": [3]}')
  const rules: Array<FaultRule> = []
  for (const [index, item] of value.entries()) {
    const rule = decodeRule(item)
    if (E.isLeft(rule)) return E.left(`rule ${index + 1}: ${rule.left}`)
    rules.push(rule.right)
  }
  return E.right(rules)
}

/** Parses `3=429,5=reset`: the numbered requests of the two exports fail, each with its kind of fault. */
export const parseFaultList = (text: string): E.Either<string, ReadonlyArray<FaultRule>> =>
  decodeFaultPlan(
    text
      .split(',')
      .filter((item) => item.trim() !== '')
      .map((item) => {
        const [, number = '0', kind = item] = /^\s*(\d+)=(\w+)\s*$/.exec(item) ?? []
        return { kind, operation: 'exports', requests: [Number(number)] }
      }),
  )

/** A pseudo-random number from 0 to 1 that depends only on the arguments. */
const requestChance = (seed: number, rule: number, request: number): number => {
  let state = (seed * 0x9e3779b1 + rule * 0x85ebca6b + request * 0xc2b2ae35) | 0
  for (const factor of [0x85ebca6b, 0xc2b2ae35]) state = Math.imul(state ^ (state >>> 15), factor)
  return ((state ^ (state >>> 16)) >>> 0) / 2 ** 32
}

const appliesTo = (rule: FaultRule, request: number, count: number, chance: number): boolean =>
  count < rule.times &&
  (rule.requests === undefined
    ? request >= rule.from && request <= rule.to && (rule.share >= 1 || chance < rule.share)
    : rule.requests.includes(request))

/**
 * Returns a function to call once per request, which returns the fault of the first matching rule. The same seed and
 * requests give the same faults.
 */
export const scheduleFaults = (
  rules: ReadonlyArray<FaultRule>,
  seed: number,
): ((operation: OperationName) => Fault | undefined) => {
  const requests = rules.map(() => 0)
  const counts = rules.map(() => 0)
  return (operation) => {
    const match = rules
      .map((rule, index) => ({ rule, index }))
      .filter(({ rule }) => rule.operations.includes(operation))
      .map(({ rule, index }) => {
        const request = (requests[index] ?? 0) + 1
        requests[index] = request
        const applies = appliesTo(rule, request, counts[index] ?? 0, requestChance(seed, index, request))
        return { rule, index, applies }
      })
      .find(({ applies }) => applies)
    if (match === undefined) return undefined
    counts[match.index] = (counts[match.index] ?? 0) + 1
    return match.rule
  }
}
