import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as t from 'io-ts'
import { type ApiError, applicationError } from './error'
import { parseExactJson } from './json-text'
import type { RawResponse, ResponseCodec } from './route'

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
