import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import { cutter } from './api/cut'
import { type ApiError, isUnreachable } from './api/error'
import { fetchDeletedReviews, fetchReviews } from './api/export'
import { DeletedReview, Review } from './api/model/review'
import { toInstant } from './api/model/scalar'
import type { FetchPage, Page } from './api/page'
import { signpost } from './api/scan/signpost'
import { configFailure, type Failure, transientFailure } from './cdk/failure'
import { toFinding } from './hurry'
import { questionsOf } from './probe-others'
import type { Source } from './streams/source'
import type { Wired } from './wire'

/** What is wrong, or warnings. */
type Finding = E.Either<Failure, ReadonlyArray<string>>

type Operation = readonly [name: string, fetch: FetchPage]

/** An inquiry under way. */
export type Probing = {
  readonly finding: Promise<Finding>
  /** The operations that have not answered in full yet. */
  readonly open: () => ReadonlyArray<string>
}

const shape = { list: 'reviews', key: 'id', cursor: 'modifiedTime', undeclared: 'drop' } as const

const operationsOf = ({ api }: Source): readonly [Operation, ...ReadonlyArray<Operation>] => [
  ['export reviews', fetchReviews(api, cutter({ codec: Review, ...shape }))],
  ['export deleted reviews', fetchDeletedReviews(api, cutter({ codec: DeletedReview, ...shape }))],
]

type Probed = Pick<Wired, 'source' | 'streams'>

/** Asks each operation for a few rows; answers warnings. A failure says which is refused and what to do. */
export const probe =
  (wired: Probed): TaskEither<Failure, ReadonlyArray<string>> =>
  () =>
    probing(wired).finding

/** The same, to be watched. The first operation knocks: where nobody opens, the others are not asked. */
export const probing = ({ source, streams }: Probed): Probing => {
  const [[first, fetch], ...others] = operationsOf(source)
  const questions = questionsOf(source, streams)
  const open = new Set([first, ...others.map(([name]) => name), ...questions.map(([name]) => name)])
  const closing = async (name: string, finding: Promise<Finding>): Promise<Finding> => {
    const found = await finding
    open.delete(name)
    return found
  }
  const inquire = async (): Promise<Finding> => {
    const knock = await ask(fetch, source, source.startDate)()
    if (E.isLeft(knock) && !isOwn(knock.left)) return E.left(atTheDoor(first, knock.left))
    return together(
      await Promise.all([
        closing(first, judge(first, fetch, source, knock)),
        ...others.map(async ([name, other]) =>
          closing(name, judge(name, other, source, await ask(other, source, source.startDate)())),
        ),
        ...questions.map(([name, question]) => closing(name, question())),
      ]),
    )
  }
  return { finding: inquire(), open: () => [...open] }
}

const ask = (fetch: FetchPage, { filters }: Source, from: number, offset = 0): TaskEither<ApiError, Page> =>
  fetch({ ...filters, modifiedTimeFrom: toInstant(from), offset, limit: 10 })

/** Whether an error speaks of one operation only: the others may tell more. */
const isOwn = (error: ApiError): boolean =>
  error._tag === 'Application' || (error._tag === 'Http' && error.status >= 400 && ![401, 429].includes(error.status))

/** Nothing works yet, so the address is the first suspect. */
const atTheDoor = (operation: string, error: ApiError): Failure => {
  const failure = toFinding(operation, error)
  const code = error._tag === 'Network' || error._tag === 'Token' ? error.code : undefined
  if (code !== undefined && isUnreachable(code)) return { ...failure, _tag: 'Config' }
  return error._tag === 'Decode' && error.remedy === undefined
    ? configFailure(
        `${operation}: what answers at base_url is not the service (at ${error.path}: ${error.message}). Check base_url; a proxy or a login page may stand between.`,
      )
    : failure
}

/** What an offset behind the last row is answered with is not shown; the request was just answered without one. */
const isRefused = (error: ApiError): boolean => error._tag === 'Http' && error.status === 400

/** A time so late that nothing can have changed after it. */
const tomorrow = 86_400_000

/** What the first rows tell, and whether time and offset are heeded: else every run would read everything, or the same. */
const judge = async (
  operation: string,
  fetch: FetchPage,
  source: Source,
  first: E.Either<ApiError, Page>,
): Promise<Finding> =>
  pipe(
    TE.fromEither(first),
    TE.flatMap((page) =>
      pipe(
        TE.Do,
        TE.apS('page', TE.right<ApiError, Page>(page)),
        TE.apS('later', ask(fetch, source, Math.max(source.now(), page.servedAt ?? 0) + tomorrow)),
        TE.apS(
          'next',
          page.rows.length === 0
            ? TE.right(page)
            : pipe(
                ask(fetch, source, source.startDate, page.rows.length),
                TE.orElse((error) => (isRefused(error) ? TE.right({ ...page, rows: [] }) : TE.left(error))),
              ),
        ),
      ),
    ),
    TE.mapLeft((error) => toFinding(operation, error)),
    TE.flatMapEither(({ page, later, next }) => {
      const unheeded = (how: string) =>
        E.left(
          configFailure(
            `${operation}: the service ${how}. No run could be sure to have read everything; ask its operator.`,
          ),
        )
      if (later.rows.length > 0)
        return unheeded('does not heed modifiedTimeFrom: it answers rows though the time asked for lies in the future')
      if (page.rows.some(({ modifiedTime }) => modifiedTime < source.startDate - 1000))
        return unheeded('does not heed modifiedTimeFrom: it answers rows from before start_date')
      if (next.rows.length > 0 && next.rows.every(({ id }, i) => id === page.rows[i]?.id))
        return unheeded('does not heed offset: it answers the same rows at another one')
      return E.right([
        ...signpost(page.servedAt, source.now())[1].map(({ message }) => message),
        ...(page.narrowed ?? []).map(
          (key) => `${operation}: the service applies a narrower ${key} than the config asks.`,
        ),
      ])
    }),
  )()

/** What is the config's to mend comes first; warnings are said once. */
const together = (findings: ReadonlyArray<Finding>): Finding => {
  const failures = findings.flatMap((finding) => (E.isLeft(finding) ? [finding.left] : []))
  const mendable = failures.filter(({ _tag }) => _tag === 'Config')
  const told = mendable.length > 0 ? mendable : failures
  if (told.length > 0) {
    const make = mendable.length > 0 ? configFailure : transientFailure
    const details = told.flatMap(({ detail }) => (detail === undefined ? [] : [detail]))
    return E.left(
      make(told.map(({ message }) => message).join(' '), details.length === 0 ? undefined : details.join('; ')),
    )
  }
  return E.right([...new Set(findings.flatMap((finding) => (E.isRight(finding) ? finding.right : [])))])
}
