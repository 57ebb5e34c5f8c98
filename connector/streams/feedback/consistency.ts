import { pipe } from 'fp-ts/function'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import { type ApiError, toInstant, toMillis } from '../../api'
import { ceilToSecond } from '../../export'
import type { EntityFeedback, FeedbackPage, FeedbackRequest, FeedbackService } from './page'

type FetchFeedback = (request: FeedbackRequest) => TaskEither<ApiError, FeedbackPage>

const maxConsistencyAttempts = 3

/** Requests have whole seconds, and a service may leave the fractions of its rows out of account. */
const edgeMargin = 2000

/** Whether rows lie outside the window (milliseconds): then splitting the window would never end. */
export const isOutsideWindow = (from: number, to: number, { rows }: Pick<EntityFeedback, 'rows'>): boolean =>
  rows.some(({ mentionTime }) => {
    const time = toMillis(String(mentionTime))
    return time < from - edgeMargin || time > to + edgeMargin
  })

type TimeSpan = { readonly from: number; readonly to: number }

/** Whether an echoed window is wider than the requested one; a narrower one is allowed. Milliseconds. */
const isWiderWindow = (requested: TimeSpan, echoed: TimeSpan): boolean =>
  echoed.from < requested.from || echoed.to > ceilToSecond(requested.to)

/** What an answer echoes of the requested window. */
export const findEcho = (
  request: TimeSpan,
  { window }: Pick<FeedbackPage, 'window'>,
): 'requested' | 'wider' | 'none' =>
  window === undefined ? 'none' : isWiderWindow(request, window) ? 'wider' : 'requested'

/**
 * Fails with `ignoredWindowError` if the service ignores the window of a request: its answer has a scrollKey and does not
 * echo the window, or the answer to a window of one second has other rows. The latter takes one request.
 */
export const checkWindowIsUsed = (
  { operation: { firstPage }, fetch }: FeedbackService,
  request: Omit<FeedbackRequest, 'page'>,
  page: FeedbackPage,
): TaskEither<ApiError, 'used'> => {
  if (page.scrollKey !== undefined && findEcho(request, page) !== 'requested') return TE.left(ignoredWindowError)
  const { kind, ids, from } = request
  const hasRows = page.entities.find(({ id, rows }) => rows.length > 0 && ids.includes(id))?.id ?? ids[0] ?? ''
  const second = { kind, ids: [hasRows], from, to: Math.min(request.to, from + 1000), page: firstPage }
  return pipe(
    fetch(second),
    TE.map((answer) => answer.entities.some((feedback) => isOutsideWindow(from, second.to, feedback))),
    // It does not answer for such a window: so it uses the dates.
    TE.orElse((error) => (concernsRequest(error) ? TE.right(false) : TE.left(error))),
    TE.flatMap((isIgnored) => (isIgnored ? TE.left(ignoredWindowError) : TE.right('used' as const))),
  )
}

/** The path of the errors by which a service shows that it ignores windows or page numbers. */
const filterPath = '$.data.filter'

export const ignoredWindowError: ApiError = {
  _tag: 'Decode',
  path: filterPath,
  message: 'the service ignores fromDate and toDate: the answer has rows of other times',
}

export const ignoredPageError: ApiError = {
  _tag: 'Decode',
  path: filterPath,
  message: 'the service ignores page: it answers each page with the first one',
}

/** Whether the rows cannot be read by windows. */
export const needsScroll = (error: ApiError): boolean => error._tag === 'Decode' && error.path === filterPath

/** Whether an error may be about what was requested and not about the service. */
const concernsRequest = (error: ApiError): boolean =>
  error._tag === 'Application' ||
  error._tag === 'TooLarge' ||
  (error._tag === 'Http' && [400, 403, 404, 410, 413, 414, 416, 422].includes(error.status))

export const otherEntityError: ApiError = {
  _tag: 'Decode',
  path: '$.data.entities.id',
  message: 'the answer is about another entity than the requested one',
}

const otherWindowError = ({ from, to }: FeedbackRequest): ApiError => ({
  _tag: 'Decode',
  path: filterPath,
  message: `the answer is not of the requested window from ${toInstant(from)} to ${toInstant(to)}`,
})

/** What a service may or may not do: echo the requested window, list an entity by its id, list a roll-up as itself. */
type Trait = 'echoes window' | 'keeps ids' | 'keeps roll-up ids'

/** A sign that an answer belongs to another request, and the trait of the service that it contradicts. */
type Inconsistency = { readonly trait: Trait; readonly error: ApiError }

/**
 * Checks each answer against its request, and requests it up to twice more if it seems to belong to another one. The
 * specification does not promise that the echo is exact, or that an answer has the requested ids; so traits are learned. A
 * trait that an answer has shown is required from then on. Ids that no answer has shown by the last attempt are not required.
 */
export const withConsistencyCheck = (fetch: FetchFeedback): FetchFeedback => {
  /** The learned traits: true if an answer has shown it, false if it is not required. */
  const traits = new Map<Trait, boolean>()
  const requestedIds = new Set<string>()

  const checkWindow = (request: FeedbackRequest, { window, entities }: FeedbackPage): ReadonlyArray<Inconsistency> => {
    const { from, to, byDays } = request
    const trait = 'echoes window'
    if (window?.from === from && window.to === ceilToSecond(to)) traits.set(trait, true)
    if (traits.get(trait) !== true || byDays === true) return []
    if (window !== undefined && isWiderWindow(request, window)) return [{ trait, error: otherWindowError(request) }]
    return entities.some((feedback) => isOutsideWindow(from, to, feedback))
      ? [{ trait, error: ignoredWindowError }]
      : []
  }

  const checkEntity = ({ kind, ids }: FeedbackRequest, { entities }: FeedbackPage): ReadonlyArray<Inconsistency> => {
    const [id = '', ...others] = ids
    if (entities.some((feedback) => ids.includes(feedback.id))) traits.set('keeps ids', true)
    if (others.length > 0 || entities.some((feedback) => feedback.id === id)) return []
    // An answer about a roll-up may list its members, and these may have been requested too.
    return entities.length === 1 && entities.some((feedback) => requestedIds.has(feedback.id))
      ? [{ trait: kind === 'entity' ? 'keeps roll-up ids' : 'keeps ids', error: otherEntityError }]
      : []
  }

  const fetchConsistent = (request: FeedbackRequest, attempt: number): TaskEither<ApiError, FeedbackPage> =>
    pipe(
      fetch(request),
      TE.flatMap((page) => {
        const inconsistencies = [...checkWindow(request, page), ...checkEntity(request, page)].filter(
          ({ trait }) => traits.get(trait) !== false,
        )
        if (inconsistencies.length === 0) return TE.right(page)
        if (attempt < maxConsistencyAttempts) return fetchConsistent(request, attempt + 1)
        const required = inconsistencies.find(({ trait }) => traits.get(trait) === true)
        if (required !== undefined) return TE.left(required.error)
        for (const { trait } of inconsistencies) traits.set(trait, false)
        return TE.right(page)
      }),
    )

  return (request) => {
    for (const id of request.ids) requestedIds.add(id)
    return fetchConsistent(request, 1)
  }
}
