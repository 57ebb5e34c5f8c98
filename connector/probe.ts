import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import { createCutter } from './api/cut'
import { type ApiError, isUnreachableCode } from './api/error'
import { createDeletedReviewFetcher, createReviewFetcher } from './api/export'
import { DeletedReview, Review } from './api/model/review'
import { toInstant } from './api/model/scalar'
import type { ExportPage, FetchPage } from './api/page'
import { chooseCutoff } from './api/scan/signpost'
import { configFailure, type Failure, transientFailure } from './cdk/failure'
import { toCheckFailure } from './hurry'
import { listOperationChecks } from './probe-others'
import type { SourceEnv } from './streams/source'
import type { ConfiguredSource } from './wire'

/** What is wrong, or warnings. */
type CheckOutcome = E.Either<Failure, ReadonlyArray<string>>

type ExportCheck = readonly [name: string, fetch: FetchPage]

/** An inquiry under way. */
export type SourceCheck = {
  readonly outcome: Promise<CheckOutcome>
  /** The operations that have not answered in full yet. */
  readonly unansweredOperations: () => ReadonlyArray<string>
}

const exportShape = { list: 'reviews', primaryKey: 'id', cursor: 'modifiedTime', undeclared: 'drop' } as const

const listExportChecks = ({ api }: SourceEnv): readonly [ExportCheck, ...ReadonlyArray<ExportCheck>] => [
  ['export reviews', createReviewFetcher(api, createCutter({ codec: Review, ...exportShape }))],
  ['export deleted reviews', createDeletedReviewFetcher(api, createCutter({ codec: DeletedReview, ...exportShape }))],
]

type CheckedSource = Pick<ConfiguredSource, 'source' | 'streams'>

/** Asks each operation for a few rows; answers warnings. A failure says which is refused and what to do. */
export const checkSource =
  (wired: CheckedSource): TaskEither<Failure, ReadonlyArray<string>> =>
  () =>
    startSourceCheck(wired).outcome

/** The same, to be watched. The first operation knocks: where nobody opens, the others are not asked. */
export const startSourceCheck = ({ source, streams }: CheckedSource): SourceCheck => {
  const [[first, fetch], ...others] = listExportChecks(source)
  const questions = listOperationChecks(source, streams)
  const open = new Set([first, ...others.map(([name]) => name), ...questions.map(([name]) => name)])
  const closing = async (name: string, finding: Promise<CheckOutcome>): Promise<CheckOutcome> => {
    const found = await finding
    open.delete(name)
    return found
  }
  const inquire = async (): Promise<CheckOutcome> => {
    const knock = await fetchSample(fetch, source, source.startDate)()
    if (E.isLeft(knock) && !isOperationError(knock.left)) return E.left(toConnectionFailure(first, knock.left))
    return mergeOutcomes(
      await Promise.all([
        closing(first, checkExportOperation(first, fetch, source, knock)),
        ...others.map(async ([name, other]) =>
          closing(
            name,
            checkExportOperation(name, other, source, await fetchSample(other, source, source.startDate)()),
          ),
        ),
        ...questions.map(([name, question]) => closing(name, question())),
      ]),
    )
  }
  return { outcome: inquire(), unansweredOperations: () => [...open] }
}

const fetchSample = (
  fetch: FetchPage,
  { filters }: SourceEnv,
  from: number,
  offset = 0,
): TaskEither<ApiError, ExportPage> => fetch({ ...filters, modifiedTimeFrom: toInstant(from), offset, limit: 10 })

/** Whether an error speaks of one operation only: the others may tell more. */
const isOperationError = (error: ApiError): boolean =>
  error._tag === 'Application' || (error._tag === 'Http' && error.status >= 400 && ![401, 429].includes(error.status))

/** Nothing works yet, so the address is the first suspect. */
const toConnectionFailure = (operation: string, error: ApiError): Failure => {
  const failure = toCheckFailure(operation, error)
  const code = error._tag === 'Network' || error._tag === 'Token' ? error.code : undefined
  if (code !== undefined && isUnreachableCode(code)) return { ...failure, _tag: 'Config' }
  return error._tag === 'Decode' && error.remedy === undefined
    ? configFailure(
        `${operation}: what answers at base_url is not the service (at ${error.path}: ${error.message}). Check base_url; a proxy or a login page may stand between.`,
      )
    : failure
}

/** What an offset behind the last row is answered with is not shown; the request was just answered without one. */
const isBadRequest = (error: ApiError): boolean => error._tag === 'Http' && error.status === 400

/** A time so late that nothing can have changed after it. */
const oneDay = 86_400_000

/** What the first rows tell, and whether time and offset are heeded: else every run would read everything, or the same. */
const checkExportOperation = async (
  operation: string,
  fetch: FetchPage,
  source: SourceEnv,
  first: E.Either<ApiError, ExportPage>,
): Promise<CheckOutcome> =>
  pipe(
    TE.fromEither(first),
    TE.flatMap((page) =>
      pipe(
        TE.Do,
        TE.apS('page', TE.right<ApiError, ExportPage>(page)),
        TE.apS('later', fetchSample(fetch, source, Math.max(source.now(), page.servedAt ?? 0) + oneDay)),
        TE.apS(
          'next',
          page.rows.length === 0
            ? TE.right(page)
            : pipe(
                fetchSample(fetch, source, source.startDate, page.rows.length),
                TE.orElse((error) => (isBadRequest(error) ? TE.right({ ...page, rows: [] }) : TE.left(error))),
              ),
        ),
      ),
    ),
    TE.mapLeft((error) => toCheckFailure(operation, error)),
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
        ...chooseCutoff(page.servedAt, source.now())[1].map(({ message }) => message),
        ...(page.narrowerFilters ?? []).map(
          (key) => `${operation}: the service applies a narrower ${key} than the config asks.`,
        ),
      ])
    }),
  )()

/** What is the config's to mend comes first; warnings are said once. */
const mergeOutcomes = (findings: ReadonlyArray<CheckOutcome>): CheckOutcome => {
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
