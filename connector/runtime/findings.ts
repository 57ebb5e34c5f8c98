import * as E from 'fp-ts/Either'
import { describeApplicationError, expiryFormat, type TokenReport } from '../api'
import type { SourceConfig } from '../config'
import { overlapSize } from '../reading'
import { type ProbeError, probedDays } from '../streams'
import type { Observations } from './client'
import type { CountFacts, PageFacts, Probed, ProbeFacts, RowOrder, WindowFacts } from './probe'
import { formatTimeLeft } from './range-estimate'

/** Something that a check found out about the service. `value`: for programs; null if unknown. */
export type Finding = {
  readonly finding: string
  readonly isKnown: boolean
  /** One clause, for the user. */
  readonly text: string
  readonly value: unknown
}

const known = (finding: string, text: string, value: unknown): Finding => ({ finding, isKnown: true, text, value })
const unknown = (finding: string, text: string): Finding => ({ finding, isKnown: false, text, value: null })

/** What a check found out, in the order in which a user needs it. */
export const describeFindings = (
  config: SourceConfig,
  { pages, count, entities, windows }: ProbeFacts,
  seen: Observations,
): ReadonlyArray<Finding> => {
  return [
    describeToken(config, seen.token),
    describeClock(seen.clock),
    describeRateLimit(seen),
    describeProbed('page size', pages, describePageSize),
    describeProbed('order', pages, ({ order, distinct }) => describeOrder(order, distinct)),
    ...describeEntities(config, entities),
    ...windows.map(describeWindow),
    describeProbed('reviews', count ?? leftOf(pages), (facts) => describeCount(config.start_date, facts)),
    describeFirstSync(pages, count, config.rate_limit),
    known('requests', `${seen.sends} for this check`, seen.sends),
  ]
}

/** The service's time according to its answers, or the local clock if they do not show it; milliseconds. */
export const estimateServiceTime = ({ clock }: Observations, now: number): number =>
  clock === undefined || clock === 'contradictory' ? now : now + (clock[0] + clock[1]) / 2

/** What the user should change, judging by the findings. */
export const listFindingWarnings = ({ entities }: ProbeFacts): ReadonlyArray<string> => {
  const missing = entities !== undefined && E.isRight(entities) ? entities.right.unknown : []
  return missing.map(
    ({ key, id, reason }) =>
      `${key}: the service does not know ${id} (${reason}). Correct it or take it out; a run reads the others.`,
  )
}

const leftOf = (probed: Probed<unknown>): Probed<never> =>
  probed !== undefined && E.isLeft(probed) ? probed : undefined

const describeError = (error: ProbeError | undefined): string => {
  switch (error?._tag) {
    case undefined:
    case 'Stopped':
      return 'there was no time to check'
    case 'Failed':
      return 'export reviews fails'
    case 'Http':
      return `the service answered ${error.status}`
    case 'Application':
      return describeApplicationError(error)
    case 'Network':
    case 'Proxy':
      return `there was no usable answer (${error.code})`
    case 'Wait':
      return `the service asks to wait ${Math.ceil(error.wait / 1000)} s`
    default:
      return 'the answer did not match the request'
  }
}

const describeProbed = <A>(finding: string, probed: Probed<A>, describe: (facts: A) => Finding): Finding =>
  probed !== undefined && E.isRight(probed)
    ? describe(probed.right)
    : unknown(finding, `unknown: ${describeError(probed?.left)}`)

const describeToken = ({ credentials }: SourceConfig, report: TokenReport | undefined): Finding => {
  if (credentials.auth_type === 'access_token')
    return unknown(
      'token',
      'fixed in credentials.access_token; its expiry is unknown until the service refuses it (401)',
    )
  if (report === undefined) return unknown('token', `unknown: ${describeError(undefined)}`)
  const { form, expiry, lifetime, renewal } = report
  const { encoding, id_field, secret_field } = form
  const sent = encoding === 'basic' ? 'Basic authorization' : `${encoding} with ${id_field} and ${secret_field}`
  const renewed = `renewed after ${formatTimeLeft(renewal)}`
  const text =
    lifetime === undefined
      ? expiry === undefined
        ? `issued for ${sent}; the answer gives no lifetime, so it is ${renewed}`
        : `issued for ${sent}; its lifetime is unknown, since the answer gives ` +
          `no expiry within a day, so it is ${renewed}`
      : `issued for ${sent}; lives ${formatTimeLeft(lifetime)} (the answer gives ${describeExpiry(expiry)}), ${renewed}`
  return known('token', text, {
    form,
    expiry_format: lifetime === undefined ? null : expiryFormat(expiry),
    lifetime_seconds: lifetime === undefined ? null : lifetime / 1000,
    renewed_after_seconds: renewal / 1000,
  })
}

const describeExpiry = (expiry: unknown): string => {
  const format = expiryFormat(expiry)
  return format === 'a time without a zone' ? 'a time without a zone, read as UTC' : (format ?? 'nothing')
}

const describeClock = (clock: Observations['clock']): Finding => {
  if (clock === undefined)
    return unknown('clock', 'unknown: no answer has a Date header, so each run leaves out the last 5 minutes')
  if (clock === 'contradictory')
    return unknown('clock', 'unknown: the Date headers of the answers contradict each other')
  const [least, most] = clock
  const seconds = Math.round((least + most) / 2000)
  if (least <= 1000 && most >= -1000) return known('clock', 'the same as here, to the second', 0)
  return seconds > 0
    ? known('clock', `the service's is ${seconds} s ahead of the one here; a run uses the service's`, seconds)
    : known('clock', `the service's is ${-seconds} s behind the one here; a run uses the service's`, seconds)
}

const describeRateLimit = ({ answers, refusedForRate, rateLimitHeaders }: Observations): Finding => {
  const headers = Object.entries(rateLimitHeaders).map(([name, value]) => `${name}: ${value}`)
  const refused = refusedForRate === 0 ? '' : `; ${refusedForRate} of ${answers} answers were 429`
  return known(
    'rate limit',
    headers.length === 0
      ? `no rate-limit headers in ${answers} answers${refused}`
      : `reported as ${headers.join(', ')}${refused}`,
    { headers: rateLimitHeaders, answers_429: refusedForRate },
  )
}

const formatCount = (count: number): string => count.toLocaleString('en')

const describePageSize = ({ asked, rows: [first, second], echoedLimit, ending }: PageFacts): Finding => {
  const largest = Math.max(first, second)
  const value = { asked, got: largest, clamp: null }
  const asks = `asked for ${formatCount(asked)}, got ${formatCount(first)}`
  if (first > asked) return known('page size', `${asks}: the service ignores limit`, value)
  if (first === asked) return known('page size', `${asks}: no clamp`, value)
  if (second > 0 && ending === undefined)
    return known('page size', `${asks} and there are more: the service clamps pages at ${formatCount(largest)}`, {
      ...value,
      clamp: largest,
    })
  if (echoedLimit !== undefined && echoedLimit < asked)
    return known('page size', `${asks}: the service lowers limit to ${formatCount(echoedLimit)}`, {
      ...value,
      clamp: echoedLimit,
    })
  return unknown('page size', `${asks}, and no more after it: unknown if the service clamps larger pages`)
}

const orderTexts: Readonly<Record<RowOrder, readonly [text: string, value: string | null]>> = {
  ascending: ['by modifiedTime, oldest first', 'modified_time_ascending'],
  descending: ['by modifiedTime, newest first', 'modified_time_descending'],
  'by id': ['by id', 'id'],
  none: ['neither by modifiedTime nor by id; a run needs no order', 'none'],
  'one time': ['unknown: all rows have the same modifiedTime', null],
  'one row': ['unknown: there is only one review', null],
  'no rows': ['unknown: there are no reviews', null],
}

const describeOrder = (order: RowOrder, rows: number): Finding => {
  const [text, value] = orderTexts[order]
  return value === null
    ? unknown('order', text)
    : known('order', `${text}, as far as ${formatCount(rows)} rows show`, value)
}

const describeEntities = ({ entities }: SourceConfig, probed: ProbeFacts['entities']): ReadonlyArray<Finding> => {
  if (entities.person_ids.length + entities.location_ids.length + entities.entity_ids.length === 0) return []
  return [
    describeProbed('entities', probed, ({ total, unknown: missing, unasked }) => {
      const rest = unasked === 0 ? '' : `; ${unasked} were not checked`
      const names = missing.map(({ key, id, reason }) => `${id} in ${key} (${reason})`)
      const value = { total, unknown: missing.map(({ key, id }) => ({ key, id })), unasked }
      return missing.length === 0
        ? known('entities', `the service lists ${total - unasked} of ${total}${rest}`, value)
        : known(
            'entities',
            `${missing.length} of ${total} are unknown to the service: ${names.join(', ')}${rest}`,
            value,
          )
    }),
  ]
}

const describeWindow = ({ operation, evidence }: WindowFacts): Finding => {
  const described = describeProbed('windows', evidence, (found) => {
    if (found === undefined) return unknown('windows', `unknown: the entity has no rows in the last ${probedDays} days`)
    return known('windows', `${found ? 'uses' : 'ignores'} fromDate and toDate, as the rows show`, {
      operation,
      used: found,
    })
  })
  return { ...described, text: `${operation}: ${described.text}` }
}

const describeCount = (since: string, { min, max, limit }: CountFacts): Finding => {
  const least = formatCount(min)
  const value = { at_least: min, at_most: max ?? null, since }
  if (max === min) return known('reviews', `${least} since start_date`, value)
  if (max !== undefined) return known('reviews', `${least} to ${formatCount(max)} since start_date`, value)
  const why =
    limit?._tag === 'Refused'
      ? `the service refuses offset ${formatCount(limit.offset)}`
      : limit?._tag === 'Repeated'
        ? `the service answers offset ${formatCount(limit.offset)} with a row of another offset`
        : describeError(limit?._tag === 'Stopped' ? limit.error : undefined)
  return known('reviews', `at least ${least} since start_date: ${why}`, value)
}

/**
 * Estimates the first sync from the two pages that were read, requested one at a time or with as many at once as a run
 * uses.
 */
const describeFirstSync = (
  pages: Probed<PageFacts>,
  count: Probed<CountFacts>,
  { requests_per_minute, max_concurrency }: SourceConfig['rate_limit'],
): Finding => {
  if (pages === undefined || E.isLeft(pages) || count === undefined || E.isLeft(count))
    return unknown('first sync', 'unknown, since it depends on the number of reviews')
  const { rows, millis } = pages.right
  const { min, max } = count.right
  const largest = Math.max(...rows)
  if (max === 0) return known('first sync', 'nothing to read', { seconds_at_least: 0, seconds_at_most: 0 })
  const pageMillis = millis / rows.filter((n) => n > 0).length
  const newRows = Math.max(1, largest - (max === undefined || max > largest ? overlapSize(largest) : 0))
  const interval = requests_per_minute === undefined ? 0 : 60_000 / requests_per_minute
  const secondsOf = (reviews: number, atOnce: number) =>
    Math.max(1, Math.round((Math.ceil(reviews / newRows) * Math.max(pageMillis / atOnce, interval)) / 1000))
  const least = secondsOf(min, max_concurrency)
  const most = max === undefined ? undefined : secondsOf(max, 1)
  const [from, to] = [least, most ?? least].map((seconds) => formatTimeLeft(seconds * 1000))
  const duration = most === undefined ? `at least ${from}` : from === to ? `about ${from}` : `${from} to ${to}`
  const pageCount = Math.ceil((max ?? min) / newRows)
  const rate = interval === 0 ? '' : `, at rate_limit.requests_per_minute (${requests_per_minute})`
  return known(
    'first sync',
    `${duration}: ${formatCount(pageCount)} page${pageCount === 1 ? '' : 's'} of ` +
      `${formatCount(largest)} at ${(pageMillis / 1000).toFixed(2)} s as measured ` +
      `here, up to ${max_concurrency} at once${rate}, plus the time to load the rows`,
    { seconds_at_least: least, seconds_at_most: most ?? null },
  )
}
