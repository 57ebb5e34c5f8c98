import type { IncomingMessage } from 'node:http'
import * as E from 'fp-ts/Either'
import type { ApiError } from '../../api'
import { defined } from '../../cdk'
import { alterRequest, corruptResponse, faultReply } from '../faults/corrupt'
import type { Fault } from '../faults/plan'
import {
  bodySizeError,
  missingTokenError,
  type OperationName,
  permissionError,
  rateLimitError,
  type TokenRegistry,
} from '../operations/operation'
import { type Handler, maxBodyBytes, readBody } from './handlers'
import { apiErrorReply, type Reply } from './reply'

export type RequestContext = {
  readonly tokenRegistry: TokenRegistry
  /** Milliseconds to wait if this request is one too many. */
  readonly checkRate: (now: number) => number | undefined
  readonly now: () => number
  /** The text of each operation's last answer, for faults that repeat it. */
  readonly lastAnswers: Map<OperationName, string>
}

/** What becomes of a request. Without a reply the connection breaks, or nothing ever comes. */
export type OperationOutcome = { readonly reply?: Reply; readonly input?: unknown }

const readToken = (request: IncomingMessage, { tokenHeader }: Handler): string | undefined => {
  const value = tokenHeader === undefined ? undefined : request.headers[tokenHeader.toLowerCase()]
  return Array.isArray(value) ? value[0] : value
}

/** Why a request may not pass, before anybody reads it. */
const checkAccess = (gate: RequestContext, handler: Handler, request: IncomingMessage): ApiError | undefined => {
  if (handler.tokenHeader === undefined) return undefined
  const wait = gate.checkRate(gate.now())
  if (wait !== undefined) return rateLimitError(wait)
  const granted = gate.tokenRegistry.grantedOperations(readToken(request, handler))
  if (granted === undefined) return missingTokenError(handler.operation, handler.tokenHeader)
  return granted.includes(handler.operation) ? undefined : permissionError
}

const refuseRequest = (error: ApiError, asked?: unknown): OperationOutcome => {
  const reply = apiErrorReply(error)
  return { input: asked, ...defined({ reply }) }
}

/** One request of an operation, with the fault that strikes it. */
export const performOperation = async (
  gate: RequestContext,
  handler: Handler,
  fault: Fault | undefined,
  query: URLSearchParams,
  request: IncomingMessage,
): Promise<OperationOutcome> => {
  const body = await readBody(request)
  if (fault?.kind === 'reset' || fault?.kind === 'hang') return {}
  const struck = fault === undefined ? undefined : faultReply(fault, gate.now())
  if (struck !== undefined) return { reply: struck }
  if (fault?.kind === 'revoke') gate.tokenRegistry.revoke(readToken(request, handler))
  const error = body === undefined ? bodySizeError(maxBodyBytes) : checkAccess(gate, handler, request)
  if (error !== undefined || body === undefined) return refuseRequest(error ?? bodySizeError(maxBodyBytes))
  const value = handler.decodeInput({ query, contentType: request.headers['content-type'] ?? '', body })
  if (E.isLeft(value)) return refuseRequest(value.left)
  const answer = await handler.answer(alterRequest(fault, value.right))
  if (E.isLeft(answer)) return refuseRequest(answer.left, value.right)
  const before = gate.lastAnswers.get(handler.operation)
  const reply = { status: 200, body: answer.right.body }
  gate.lastAnswers.set(handler.operation, Buffer.from(reply.body).toString('utf8'))
  return { reply: fault === undefined ? reply : corruptResponse(fault, reply, before), input: value.right }
}
