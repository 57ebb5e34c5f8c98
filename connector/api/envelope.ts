import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as t from 'io-ts'
import { parseExactJson, printExactJson, readMembersAt, stringAt } from '../cdk'
import { type ApiError, applicationError, isSuccessStatus } from './error'
import { Instant, Int64 } from './model/scalar'
import { EnvelopeStatus } from './model/transparency'
import { VisitRecordResult } from './model/visit-record'
import { jsonResponse, type RawResponse, type ResponseCodec, toDecodeError } from './route'

const ErrorBody = t.type({
  status: t.intersection([t.partial({ code: t.unknown, message: t.unknown }), t.UnknownRecord]),
})

/** What the documented error body says, where an answer is one (Errors). */
const decodeErrorBody = ({ body }: RawResponse): E.Either<unknown, ApiError> =>
  pipe(
    E.tryCatch(
      () => parseExactJson(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8')),
      () => 'not JSON',
    ),
    E.flatMap(ErrorBody.decode),
    E.map(({ status }) => applicationError(status)),
  )

/** An answer that is not what was asked for but the documented error body is an application error inside a 200 (Errors). */
export const withApplicationError = <A>(body: ResponseCodec<A>): ResponseCodec<A> => ({
  ...body,
  decode: (answer) =>
    pipe(
      body.decode(answer),
      E.mapLeft((error) => E.getOrElse(() => error)(decodeErrorBody(answer))),
    ),
})

const parsedVisitRecords = jsonResponse(VisitRecordResult)

/** The outcomes in an answer to operation 4; undefined where it is not as it should be. */
const extractOutcomes = (body: Buffer): VisitRecordResult | undefined => {
  const members = readMembersAt(body, { start: 0, end: body.length })
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
      others.map(([name, { start, end }]) => [name, parseExactJson(body.toString('utf8', start, end))]),
    ),
    records: {},
  }
  return VisitRecordResult.is(rest) ? { ...rest, records } : undefined
}

/**
 * The answer to operation 4. Its names are other ones in every answer, for which the engine's parser makes a form of object
 * each time, ten times as slow as walking the bytes; only what is wrong with an answer is left for the parser to say.
 */
export const visitRecordResponse: ResponseCodec<VisitRecordResult> = {
  ...parsedVisitRecords,
  decode: (answer) => {
    const { buffer, byteOffset, byteLength } = answer.body
    const result = E.tryCatch(() => extractOutcomes(Buffer.from(buffer, byteOffset, byteLength)), String)
    return E.isRight(result) && result.right !== undefined ? E.right(result.right) : parsedVisitRecords.decode(answer)
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

/** What an answer must hold to be understood: ids, keys and cursors; `Comment` and others say what else may come. */
const ReviewsResponse = envelopeCodec(
  t.intersection([
    t.type({ id: t.string }),
    t.partial({
      reviews: nullableList(t.intersection([t.type({ documentId: Int64, mentionTime: Instant }), t.UnknownRecord])),
    }),
    t.UnknownRecord,
  ]),
)
/** Answer of operation 1. */
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
/** Answer of operations 2 and 3. */
export type CommentsResponse = t.TypeOf<typeof CommentsResponse> & ServerTime

/** The service's clock when it began to answer, milliseconds, where it is known; not part of the answer's body. */
type ServerTime = { readonly servedAt?: number }

const StatusEnvelope = t.partial({
  status: t.union([EnvelopeStatus, t.null]),
  data: t.union([t.UnknownRecord, t.null]),
})

/** The codes are not shown: a list of entities and a message that is null or "success", in any case, is success. */
const isSuccessEnvelope = ({ status, data }: t.TypeOf<typeof StatusEnvelope>): boolean =>
  Array.isArray(data?.entities) && isSuccessStatus(status)

const decodeWith = <A>(codec: t.Type<A, unknown>, value: unknown): E.Either<ApiError, A> =>
  E.mapLeft(toDecodeError)(codec.decode(value))

const decodeEnvelope = <A>(codec: t.Type<A, unknown>, body: Uint8Array): E.Either<ApiError, A> =>
  pipe(
    E.tryCatch(
      () => parseExactJson(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8')),
      (): ApiError => ({ _tag: 'Decode', path: '$', message: 'not JSON' }),
    ),
    E.chain((value) =>
      pipe(
        decodeWith(StatusEnvelope, value),
        E.chain((outcome): E.Either<ApiError, unknown> => {
          if (isSuccessEnvelope(outcome)) return E.right({ ...outcome, status: outcome.status ?? {} })
          if (outcome.status === undefined || outcome.status === null)
            return E.left({ _tag: 'Decode', path: '$.status', message: 'expected a status' })
          return E.left(applicationError(outcome.status))
        }),
      ),
    ),
    E.chain((value) => decodeWith(codec, value)),
  )

/** An answer of operations 1 to 3; `entity` describes its entities. */
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
      decodeEnvelope(codec, body),
      E.map((answer): A & ServerTime => Object.assign({}, answer, servedAt === undefined ? {} : { servedAt })),
    ),
  encode: (value) => ({ body: Buffer.from(printExactJson(codec.encode(value))) }),
})

export const reviewsResponse = (entity: t.Any, filter: t.Any): ResponseCodec<ReviewsResponse> =>
  envelopeResponse(ReviewsResponse, entity, filter)
export const commentsResponse = (entity: t.Any, filter: t.Any): ResponseCodec<CommentsResponse> =>
  envelopeResponse(CommentsResponse, entity, filter)

const StatusBody = t.type({ status: EnvelopeStatus })

/** An answer of a lookup, whose form is not shown; a status in it whose message is not success is an error, as elsewhere. */
export const lookupResponse: ResponseCodec<unknown> = {
  ...jsonResponse(t.unknown),
  decode: (answer) =>
    pipe(
      jsonResponse(t.unknown).decode(answer),
      E.filterOrElse(
        (value) => !StatusBody.is(value) || isSuccessStatus(value.status),
        (value) => applicationError(StatusBody.is(value) ? value.status : undefined),
      ),
    ),
}
