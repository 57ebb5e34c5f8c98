import type { IncomingMessage } from 'node:http'
import * as E from 'fp-ts/Either'
import type { ApiError } from '../api/error'
import type { Fault } from './faults'
import type { Handler } from './handlers'
import type { Operation } from './operations'
import { maxBody, readBody } from './read-body'
import { forbidden, noToken, tooFast, tooLong } from './refusals'
import { errorReply, type Reply } from './respond'
import { meddle, replyOf, spoil } from './spoil'
import type { Tokens } from './tokens'

export type Gate = {
  readonly tokens: Tokens
  /** Milliseconds to wait if this request is one too many. */
  readonly limited: (now: number) => number | undefined
  readonly now: () => number
  /** The text of each operation's last answer, for faults that repeat it. */
  readonly last: Map<Operation, string>
}

/** What becomes of a request. Without a reply the connection breaks, or nothing ever comes. */
export type Outcome = { readonly reply?: Reply; readonly asked?: unknown }

const tokenOf = (request: IncomingMessage, { token }: Handler): string | undefined => {
  const value = token === undefined ? undefined : request.headers[token.toLowerCase()]
  return Array.isArray(value) ? value[0] : value
}

/** Why a request may not pass, before anybody reads it. */
const stopped = (gate: Gate, handler: Handler, request: IncomingMessage): ApiError | undefined => {
  if (handler.token === undefined) return undefined
  const wait = gate.limited(gate.now())
  if (wait !== undefined) return tooFast(wait)
  const granted = gate.tokens.grant(tokenOf(request, handler))
  if (granted === undefined) return noToken(handler.operation, handler.token)
  return granted.includes(handler.operation) ? undefined : forbidden
}

const refused = (error: ApiError, asked?: unknown): Outcome => {
  const reply = errorReply(error)
  return { asked, ...(reply === undefined ? {} : { reply }) }
}

/** One request of an operation, with the fault that strikes it. */
export const perform = async (
  gate: Gate,
  handler: Handler,
  fault: Fault | undefined,
  query: URLSearchParams,
  request: IncomingMessage,
): Promise<Outcome> => {
  const body = await readBody(request)
  if (fault?.kind === 'reset' || fault?.kind === 'hang') return {}
  const struck = fault === undefined ? undefined : replyOf(fault, gate.now())
  if (struck !== undefined) return { reply: struck }
  if (fault?.kind === 'revoke') gate.tokens.revoke(tokenOf(request, handler))
  const error = body === undefined ? tooLong(maxBody) : stopped(gate, handler, request)
  if (error !== undefined || body === undefined) return refused(error ?? tooLong(maxBody))
  const value = handler.read({ query, contentType: request.headers['content-type'] ?? '', body })
  if (E.isLeft(value)) return refused(value.left)
  const answer = await handler.answer(meddle(fault, value.right))
  if (E.isLeft(answer)) return refused(answer.left, value.right)
  const before = gate.last.get(handler.operation)
  const reply = { status: 200, body: answer.right.body }
  gate.last.set(handler.operation, Buffer.from(reply.body).toString('utf8'))
  return { reply: fault === undefined ? reply : spoil(fault, reply, before), asked: value.right }
}
