import * as t from 'io-ts'
import { parseExactJson, printExactJson } from '../../cdk'
import { jsonReply, type Reply, refusalReply } from '../server/reply'
import type { Fault } from './plan'

const htmlPage = (title: string): Uint8Array =>
  Buffer.from(`<!doctype html><html><body><h1>${title}</h1></body></html>`)
const htmlHeaders = { 'Content-Type': 'text/html;charset=UTF-8' }

/** How a fault answers without asking the service; undefined for a fault that does not. */
export const faultReply = ({ kind, retryAfter, retryAfterDate }: Fault, now: number): Reply | undefined => {
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
      return refusalReply(Number(kind), 'Refused by the plan of faults', headers)
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

/** The rows of one answer under the echo of another. */
const replaceExportRows = (before: string, now: string): string => {
  const [, older] = exportBody.exec(before) ?? []
  const [, , echo] = exportBody.exec(now) ?? []
  return older === undefined || echo === undefined
    ? replaceDataRows(before, now)
    : `{"reviews":[${older}],"filter":${echo}}`
}

/** The same for operations 1 to 3, whose rows and echo stand in `data`. */
const replaceDataRows = (before: string, now: string): string => {
  const [older, newer] = [parseExactJson(before), parseExactJson(now)]
  return isEnvelope(older) && isEnvelope(newer)
    ? printExactJson({ ...older, data: { ...older.data, filter: newer.data.filter } })
    : before
}

const isEnvelope = (value: unknown): value is { readonly data: { readonly filter: unknown } } =>
  t.UnknownRecord.is(value) && t.UnknownRecord.is(value.data)

const keptAttributes = new Set(['id', 'documentId', 'modifiedTime', 'mentionTime', 'reviews', 'comments', 'entities'])

const emptyAttributes = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(emptyAttributes)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, field]) => [key, keptAttributes.has(key) ? emptyAttributes(field) : null]),
  )
}

/** Null for everything but envelope, keys and times. */
const emptyAnswer = (text: string): string => {
  const answer = parseExactJson(text)
  if (typeof answer !== 'object' || answer === null) return text
  return printExactJson(
    Object.fromEntries(
      Object.entries(answer).map(([key, value]) => [
        key,
        key === 'reviews' || key === 'data' ? emptyAttributes(value) : value,
      ]),
    ),
  )
}

/** What a fault makes of the answer; `before`: the text of the answer before it of the same operation. */
export const corruptResponse = (fault: Fault, reply: Reply, before: string | undefined): Reply => {
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
      return before === undefined ? reply : saying(replaceExportRows(before, text))
    case 'unknown':
      return saying(text.replace(/\{"(id|documentId|liabilityId)":/g, '{"sandboxAttribute":{"since":"2.0"},"$1":'))
    case 'nulls':
      return saying(emptyAnswer(text))
    default:
      return reply
  }
}

/** The request as a fault changes it. */
export const alterRequest = (fault: Fault | undefined, value: unknown): unknown =>
  fault?.kind === 'clamp' && t.UnknownRecord.is(value)
    ? 'perPage' in value
      ? { ...value, perPage: clampLimit(value.perPage, fault.limit) }
      : { ...value, limit: clampLimit(value.limit, fault.limit) }
    : value

/** A query carries its numbers as text. */
const clampLimit = (limit: unknown, most: number): unknown => {
  if (limit === undefined) return Math.min(1000, most)
  if (typeof limit === 'string') return String(Math.min(Number(limit), most))
  return typeof limit === 'number' ? Math.min(limit, most) : limit
}
