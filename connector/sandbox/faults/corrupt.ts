import * as t from 'io-ts'
import { parseExactJson, printExactJson } from '../../cdk'
import { jsonReply, type Reply, refusalReply } from '../server/reply'
import type { Fault } from './plan'

const htmlPage = (title: string): Uint8Array =>
  Buffer.from(`<!doctype html><html><body><h1>${title}</h1></body></html>`)
const htmlHeaders = { 'Content-Type': 'text/html;charset=UTF-8' }

/** The answer of a fault that replaces the service's answer; undefined for other faults. `now` in milliseconds. */
export const faultReply = ({ kind, retryAfter, retryAfterDate }: Fault, now: number): Reply | undefined => {
  const retryHeader = (seconds: number) => ({
    'Retry-After': retryAfterDate ? new Date(now + seconds * 1000).toUTCString() : String(seconds),
  })
  const headers = retryAfter === undefined ? {} : retryHeader(retryAfter)
  switch (kind) {
    case '400':
    case '401':
    case '403':
    case '413':
    case '429':
      return refusalReply(Number(kind), 'Refused by a fault of the plan', headers)
    case '500':
    case '502':
    case '503':
    case '504':
      return {
        status: Number(kind),
        headers: { ...htmlHeaders, ...headers },
        body: htmlPage('The service is out of order'),
      }
    case 'html':
      return { status: 200, headers: htmlHeaders, body: htmlPage('Please log in') }
    case 'application':
      return jsonReply(200, { status: { code: 'INTERNAL', message: 'Something went wrong', type: 'ERROR' } })
    default:
      return undefined
  }
}

const exportBody = /^\{"reviews":\[(.*)\],"filter":(.*)\}$/s

/** The rows of the previous answer with the filter echo of the current one. */
const combineAnswers = (previous: string, current: string): string => {
  const [, rows] = exportBody.exec(previous) ?? []
  const [, , echo] = exportBody.exec(current) ?? []
  return rows === undefined || echo === undefined
    ? combineEnvelopes(previous, current)
    : `{"reviews":[${rows}],"filter":${echo}}`
}

/** The same for operations 1 to 3, whose rows and filter echo are members of `data`. */
const combineEnvelopes = (previous: string, current: string): string => {
  const [first, second] = [parseExactJson(previous), parseExactJson(current)]
  return isEnvelope(first) && isEnvelope(second)
    ? printExactJson({ ...first, data: { ...first.data, filter: second.data.filter } })
    : previous
}

const isEnvelope = (value: unknown): value is { readonly data: { readonly filter: unknown } } =>
  t.UnknownRecord.is(value) && t.UnknownRecord.is(value.data)

const keyAttributes = new Set(['id', 'documentId', 'modifiedTime', 'mentionTime', 'reviews', 'comments', 'entities'])

const nullAttributes = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(nullAttributes)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, field]) => [key, keyAttributes.has(key) ? nullAttributes(field) : null]),
  )
}

/** The answer with null for every attribute except keys and times, in the same envelope. */
const nullAnswer = (text: string): string => {
  const answer = parseExactJson(text)
  if (Array.isArray(answer)) return printExactJson(nullAttributes(answer))
  if (typeof answer !== 'object' || answer === null) return text
  return printExactJson(
    Object.fromEntries(
      Object.entries(answer).map(([key, value]) => [
        key,
        key === 'reviews' || key === 'data' ? nullAttributes(value) : value,
      ]),
    ),
  )
}

/** The answer as changed by a fault; `previous` is the text of the last answer of the same operation. */
export const corruptResponse = (fault: Fault, reply: Reply, previous: string | undefined): Reply => {
  const text = Buffer.from(reply.body).toString('utf8')
  const withBody = (body: string): Reply => ({ ...reply, body: Buffer.from(body) })
  switch (fault.kind) {
    case 'cutjson':
      return { ...reply, body: reply.body.subarray(0, Math.floor(reply.body.length / 2)) }
    case 'contenttype':
      return { ...reply, headers: { ...reply.headers, 'Content-Type': 'text/plain' } }
    case 'stale':
      return previous === undefined ? reply : withBody(previous)
    case 'duplicate':
      return previous === undefined ? reply : withBody(combineAnswers(previous, text))
    case 'unknown':
      return withBody(text.replace(/\{"(id|documentId|liabilityId)":/g, '{"sandboxAttribute":{"since":"2.0"},"$1":'))
    case 'nulls':
      return withBody(nullAnswer(text))
    default:
      return reply
  }
}

/** The input of a request as changed by a fault; only `clamp` changes it. */
export const alterRequest = (fault: Fault | undefined, value: unknown): unknown =>
  fault?.kind === 'clamp' && t.UnknownRecord.is(value)
    ? 'perPage' in value
      ? { ...value, perPage: clampLimit(value.perPage, fault.limit) }
      : { ...value, limit: clampLimit(value.limit, fault.limit) }
    : value

/** At most `max`. A limit from a query is a text and stays one. */
const clampLimit = (limit: unknown, max: number): unknown => {
  if (limit === undefined) return Math.min(1000, max)
  if (typeof limit === 'string') return String(Math.min(Number(limit), max))
  return typeof limit === 'number' ? Math.min(limit, max) : limit
}
