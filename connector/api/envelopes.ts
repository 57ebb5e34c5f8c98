import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as t from 'io-ts'
import { defined, Instant, Int64, parseExactJson, printExactJson, readMembersAt, stringAt } from '../cdk'
import { type ApiError, applicationError, isSuccessStatus, isTokenError } from './error'
import { EnvelopeStatus } from './model/entity'
import { VisitRecordResult } from './model/written'
import { decodeWith, jsonResponse, parseBody, parseBodyLoosely, type RawResponse, type ResponseCodec } from './route'

/** The documented error body. */
export const ErrorBody = t.type({
  status: t.intersection([t.partial({ code: t.unknown, message: t.unknown }), t.UnknownRecord]),
})

/** The application error in a body in the documented error format. */
const decodeErrorBody = ({ body }: RawResponse, missing?: string): E.Either<ApiError, ApiError> =>
  pipe(
    parseBodyLoosely(body),
    E.flatMap(decodeWith(ErrorBody)),
    E.map(({ status }) => applicationError(status, '', missing)),
  )

/**
 * Decodes as `response` does. If that fails and the body has the documented error format, returns its application
 * error.
 */
export const withApplicationError = <A>(response: ResponseCodec<A>): ResponseCodec<A> => ({
  ...response,
  decode: (raw) =>
    pipe(
      response.decode(raw),
      E.mapLeft((error) =>
        E.getOrElse(() => error)(decodeErrorBody(raw, error._tag === 'Decode' ? error.path : undefined)),
      ),
    ),
})

const parsedVisitRecords = jsonResponse(VisitRecordResult)

/** The outcomes in a response of `createVisitRecords`, read from its bytes; undefined if they are not as expected. */
const extractOutcomes = (body: Buffer): VisitRecordResult | undefined => {
  const members = readMembersAt(body, { from: 0, to: body.length })
  const outcomes = readMembersAt(body, members?.get('records'))
  if (members === undefined || outcomes === undefined) return undefined
  const records: Record<string, string> = Object.create(null)
  for (const [id, span] of outcomes) {
    const outcome = stringAt(body, span)
    if (outcome === undefined) return undefined
    records[id] = outcome
  }
  const others = [...members].filter(([name]) => name !== 'records')
  const rest: unknown = {
    ...Object.fromEntries(
      others.map(([name, { from, to }]) => [name, parseExactJson(body.toString('utf8', from, to))]),
    ),
    records: {},
  }
  return VisitRecordResult.is(rest) ? { ...rest, records } : undefined
}

/**
 * The response of `createVisitRecords`. Its keys are ids that differ in every response. V8's parser builds a new object
 * shape for each, which is ten times as slow as reading the bytes. The parser is used only if the byte reader rejects
 * the response, so that error messages are the parser's own.
 */
export const visitRecordResponse: ResponseCodec<VisitRecordResult> = {
  ...parsedVisitRecords,
  decode: (response) => {
    const { buffer, byteOffset, byteLength } = response.body
    const result = E.tryCatch(() => extractOutcomes(Buffer.from(buffer, byteOffset, byteLength)), String)
    return E.isRight(result) && result.right !== undefined ? E.right(result.right) : parsedVisitRecords.decode(response)
  },
}

const FilterEcho = t.intersection([
  t.partial({
    page: t.union([t.number, t.null]),
    perPage: t.union([t.number, t.null]),
    scrollKey: t.union([t.string, t.null]),
  }),
  t.UnknownRecord,
])

const envelopeCodec = <Entity extends t.Mixed>(entity: Entity) =>
  t.type({
    status: EnvelopeStatus,
    data: t.intersection([
      t.type({ entities: t.readonlyArray(entity) }),
      t.partial({ client: t.union([t.string, t.null]), filter: t.union([FilterEcho, t.null]) }),
    ]),
  })

const nullableList = <Row extends t.Mixed>(row: Row) => t.union([t.readonlyArray(row), t.null, t.undefined])

/** When the service began to answer, by its own clock, if known; milliseconds since 1970. Not part of the body. */
type ServerTime = { readonly servedAt?: number }

/** Requires only what a reader needs: ids, times and cursors. model/entity.ts describes the rest. */
const ReviewsResponse = envelopeCodec(
  t.intersection([
    t.type({ id: t.string }),
    t.partial({
      reviews: nullableList(t.intersection([t.type({ documentId: Int64, mentionTime: Instant }), t.UnknownRecord])),
    }),
    t.UnknownRecord,
  ]),
)

/** Response of `retrieveReviews`. */
export type ReviewsResponse = t.TypeOf<typeof ReviewsResponse> & ServerTime
const CommentsResponse = envelopeCodec(
  t.intersection([
    t.type({ id: t.string }),
    t.partial({
      comments: nullableList(t.intersection([t.type({ id: Int64, mentionTime: Instant }), t.UnknownRecord])),
      totalPages: t.union([t.number, t.null]),
    }),
    t.UnknownRecord,
  ]),
)

/** Response of `retrieveComments` and `retrieveCommentsByForm`. */
export type CommentsResponse = t.TypeOf<typeof CommentsResponse> & ServerTime
const StatusEnvelope = t.partial({
  status: t.union([EnvelopeStatus, t.null]),
  data: t.union([t.UnknownRecord, t.null]),
})

/**
 * The status codes are not documented. Success is a list of entities with a message that is null or "success" in any
 * letter case.
 */
const isSuccessEnvelope = ({ status, data }: t.TypeOf<typeof StatusEnvelope>): boolean =>
  Array.isArray(data?.entities) && isSuccessStatus(status)

const toSuccessEnvelope = (envelope: t.TypeOf<typeof StatusEnvelope>): E.Either<ApiError, unknown> => {
  if (isSuccessEnvelope(envelope)) return E.right({ ...envelope, status: envelope.status ?? {} })
  const missing = Array.isArray(envelope.data?.entities) ? undefined : '$.data.entities'
  if (envelope.status === undefined || envelope.status === null)
    return E.left({ _tag: 'Decode', path: '$.status', message: 'expected a status' })
  return E.left(applicationError(envelope.status, '', missing))
}

/** A response of the transparency operations. `entity` and `filter` describe its parts. */
const envelopeResponse = <A>(
  codec: t.Type<A, unknown>,
  entity: t.Any,
  filter: t.Any,
): ResponseCodec<A & ServerTime> => ({
  codec: t.type({
    status: EnvelopeStatus,
    data: t.type({ client: t.string, entities: t.readonlyArray(entity), filter }),
  }),
  decode: ({ body, servedAt }) =>
    pipe(
      parseBody(body),
      E.mapLeft((error) =>
        pipe(
          decodeErrorBody({ body }),
          E.filterOrElse(isTokenError, () => error),
          E.toUnion,
        ),
      ),
      E.flatMap(decodeWith(StatusEnvelope)),
      E.flatMap(toSuccessEnvelope),
      E.flatMap(decodeWith(codec)),
      E.map((value): A & ServerTime => ({ ...value, ...defined({ servedAt }) })),
    ),
  encode: (value) => ({ body: Buffer.from(printExactJson(codec.encode(value))) }),
})

export const reviewsResponse = (entity: t.Any, filter: t.Any): ResponseCodec<ReviewsResponse> =>
  envelopeResponse(ReviewsResponse, entity, filter)

export const commentsResponse = (entity: t.Any, filter: t.Any): ResponseCodec<CommentsResponse> =>
  envelopeResponse(CommentsResponse, entity, filter)

const StatusBody = t.type({ status: EnvelopeStatus })

/**
 * A response of a lookup, whose format is not documented. A status whose message is not "success" is an error, as for
 * other operations.
 */
export const lookupResponse: ResponseCodec<unknown> = {
  ...jsonResponse(t.unknown),
  decode: (response) =>
    pipe(
      jsonResponse(t.unknown).decode(response),
      E.filterOrElse(
        (value) => !StatusBody.is(value) || isSuccessStatus(value.status),
        (value) => applicationError(StatusBody.is(value) ? value.status : undefined),
      ),
    ),
}
