import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as t from 'io-ts'
import { type ApiError, applicationError, isSuccess } from './error'
import { parseJson, printJson } from './json-text'
import { Instant, Int64 } from './model/scalar'
import { Status } from './model/transparency'
import { type Body, json, toDecodeError } from './route'

const Echo = t.intersection([
  t.partial({
    page: t.union([t.number, t.null]),
    perPage: t.union([t.number, t.null]),
    scrollKey: t.union([t.string, t.null]),
  }),
  t.UnknownRecord,
])

const envelope = <Entity extends t.Mixed>(entity: Entity) =>
  t.type({
    status: Status,
    data: t.intersection([
      t.type({ entities: t.readonlyArray(entity) }),
      t.partial({ client: t.union([t.string, t.null]), filter: t.union([Echo, t.null]) }),
    ]),
  })

const listed = <Row extends t.Mixed>(row: Row) => t.union([t.readonlyArray(row), t.null, t.undefined])

/** What an answer must hold to be understood: ids, keys and cursors; `Comment` and others say what else may come. */
const ReviewsAnswer = envelope(
  t.intersection([
    t.type({ id: t.string }),
    t.partial({
      reviews: listed(t.intersection([t.type({ documentId: Int64, mentionTime: Instant }), t.UnknownRecord])),
    }),
    t.UnknownRecord,
  ]),
)
/** Answer of operation 1. */
export type ReviewsAnswer = t.TypeOf<typeof ReviewsAnswer> & Served

const CommentsAnswer = envelope(
  t.intersection([
    t.type({ id: t.string }),
    t.partial({
      comments: listed(t.intersection([t.type({ id: Int64, mentionTime: Instant }), t.UnknownRecord])),
      totalPages: t.union([t.number, t.null]),
    }),
    t.UnknownRecord,
  ]),
)
/** Answer of operations 2 and 3. */
export type CommentsAnswer = t.TypeOf<typeof CommentsAnswer> & Served

/** The service's clock when it began to answer, milliseconds, where it is known; not part of the answer's body. */
type Served = { readonly servedAt?: number }

const Outcome = t.partial({ status: t.union([Status, t.null]), data: t.union([t.UnknownRecord, t.null]) })

/** The codes are not shown: a list of entities and a message that is null or "success", in any case, is success. */
const succeeded = ({ status, data }: t.TypeOf<typeof Outcome>): boolean =>
  Array.isArray(data?.entities) && isSuccess(status)

const decoded = <A>(codec: t.Type<A, unknown>, value: unknown): E.Either<ApiError, A> =>
  E.mapLeft(toDecodeError)(codec.decode(value))

const read = <A>(codec: t.Type<A, unknown>, body: Uint8Array): E.Either<ApiError, A> =>
  pipe(
    E.tryCatch(
      () => parseJson(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8')),
      (): ApiError => ({ _tag: 'Decode', path: '$', message: 'not JSON' }),
    ),
    E.chain((value) =>
      pipe(
        decoded(Outcome, value),
        E.chain((outcome): E.Either<ApiError, unknown> => {
          if (succeeded(outcome)) return E.right({ ...outcome, status: outcome.status ?? {} })
          if (outcome.status === undefined || outcome.status === null)
            return E.left({ _tag: 'Decode', path: '$.status', message: 'expected a status' })
          return E.left(applicationError(outcome.status))
        }),
      ),
    ),
    E.chain((value) => decoded(codec, value)),
  )

/** An answer of operations 1 to 3; `entity` describes its entities. */
const body = <A>(codec: t.Type<A, unknown>, entity: t.Any, filter: t.Any): Body<A & Served> => ({
  codec: t.type({ status: Status, data: t.type({ client: t.string, entities: t.readonlyArray(entity), filter }) }),
  decode: ({ body, servedAt }) =>
    pipe(
      read(codec, body),
      E.map((answer): A & Served => Object.assign({}, answer, servedAt === undefined ? {} : { servedAt })),
    ),
  encode: (value) => ({ body: Buffer.from(printJson(codec.encode(value))) }),
})

export const reviewsAnswer = (entity: t.Any, filter: t.Any): Body<ReviewsAnswer> => body(ReviewsAnswer, entity, filter)
export const commentsAnswer = (entity: t.Any, filter: t.Any): Body<CommentsAnswer> =>
  body(CommentsAnswer, entity, filter)

const Reported = t.type({ status: Status })

/** An answer of a lookup, whose form is not shown; a status in it whose message is not success is an error, as elsewhere. */
export const lookupAnswer: Body<unknown> = {
  ...json(t.unknown),
  decode: (answer) =>
    pipe(
      json(t.unknown).decode(answer),
      E.filterOrElse(
        (value) => !Reported.is(value) || isSuccess(value.status),
        (value) => applicationError(Reported.is(value) ? value.status : undefined),
      ),
    ),
}
