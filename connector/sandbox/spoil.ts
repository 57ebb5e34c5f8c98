import * as t from 'io-ts'
import { parseJson, printJson } from '../api/json-text'
import type { Fault } from './faults'
import { jsonReply, type Reply, refusal } from './respond'

const page = (title: string): Uint8Array => Buffer.from(`<!doctype html><html><body><h1>${title}</h1></body></html>`)
const html = { 'Content-Type': 'text/html;charset=UTF-8' }

/** How a fault answers without asking the service; undefined for a fault that does not. */
export const replyOf = ({ kind, retryAfter, retryAfterDate }: Fault, now: number): Reply | undefined => {
  const wait = (seconds: number) => ({
    'Retry-After': retryAfterDate ? new Date(now + seconds * 1000).toUTCString() : String(seconds),
  })
  const headers = retryAfter === undefined ? {} : wait(retryAfter)
  switch (kind) {
    case '400':
    case '401':
    case '403':
    case '413':
    case '429':
      return refusal(Number(kind), 'Refused by the plan of faults', headers)
    case '500':
    case '502':
    case '503':
    case '504':
      return { status: Number(kind), headers: { ...html, ...headers }, body: page('The service is out of order') }
    case 'html':
      return { status: 200, headers: html, body: page('Please log in') }
    case 'application':
      return jsonReply(200, { status: { code: 'INTERNAL', message: 'Something went wrong', type: 'ERROR' } })
    default:
      return undefined
  }
}

const rows = /^\{"reviews":\[(.*)\],"filter":(.*)\}$/s

/** The rows of one answer under the echo of another. */
const underEcho = (before: string, now: string): string => {
  const [, older] = rows.exec(before) ?? []
  const [, , echo] = rows.exec(now) ?? []
  return older === undefined || echo === undefined
    ? underFilter(before, now)
    : `{"reviews":[${older}],"filter":${echo}}`
}

/** The same for operations 1 to 3, whose rows and echo stand in `data`. */
const underFilter = (before: string, now: string): string => {
  const [older, newer] = [parseJson(before), parseJson(now)]
  return isEnvelope(older) && isEnvelope(newer)
    ? printJson({ ...older, data: { ...older.data, filter: newer.data.filter } })
    : before
}

const isEnvelope = (value: unknown): value is { readonly data: { readonly filter: unknown } } =>
  t.UnknownRecord.is(value) && t.UnknownRecord.is(value.data)

const kept = new Set(['id', 'documentId', 'modifiedTime', 'mentionTime', 'reviews', 'comments', 'entities'])

const emptied = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(emptied)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, field]) => [key, kept.has(key) ? emptied(field) : null]))
}

/** Null for everything but envelope, keys and times. */
const nulls = (text: string): string => {
  const answer = parseJson(text)
  if (typeof answer !== 'object' || answer === null) return text
  return printJson(
    Object.fromEntries(
      Object.entries(answer).map(([key, value]) => [key, key === 'reviews' || key === 'data' ? emptied(value) : value]),
    ),
  )
}

/** What a fault makes of the answer; `before`: the text of the answer before it of the same operation. */
export const spoil = (fault: Fault, reply: Reply, before: string | undefined): Reply => {
  const text = Buffer.from(reply.body).toString('utf8')
  const saying = (body: string): Reply => ({ ...reply, body: Buffer.from(body) })
  switch (fault.kind) {
    case 'cutjson':
      return { ...reply, body: reply.body.subarray(0, Math.floor(reply.body.length / 2)) }
    case 'contenttype':
      return { ...reply, headers: { ...reply.headers, 'Content-Type': 'text/plain' } }
    case 'stale':
      return before === undefined ? reply : saying(before)
    case 'duplicate':
      return before === undefined ? reply : saying(underEcho(before, text))
    case 'unknown':
      return saying(text.replace(/\{"(id|documentId|liabilityId)":/g, '{"sandboxAttribute":{"since":"2.0"},"$1":'))
    case 'nulls':
      return saying(nulls(text))
    default:
      return reply
  }
}

/** The request as a fault changes it. */
export const meddle = (fault: Fault | undefined, value: unknown): unknown =>
  fault?.kind === 'clamp' && t.UnknownRecord.is(value)
    ? 'perPage' in value
      ? { ...value, perPage: clamped(value.perPage, fault.limit) }
      : { ...value, limit: clamped(value.limit, fault.limit) }
    : value

/** A query carries its numbers as text. */
const clamped = (limit: unknown, most: number): unknown => {
  if (limit === undefined) return Math.min(1000, most)
  if (typeof limit === 'string') return String(Math.min(Number(limit), most))
  return typeof limit === 'number' ? Math.min(limit, most) : limit
}
