import { pipe } from 'fp-ts/function'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import { type ApiError, toInstant, toMillis } from '../../api'
import type { EntityFeedback, FeedbackPage, FeedbackRequest } from './page'

type FetchFeedback = (request: FeedbackRequest) => TaskEither<ApiError, FeedbackPage>

const day = 86_400_000
const maxConsistencyAttempts = 3

/** Whether rows are from far outside the window, milliseconds: cutting it would never come to an end. */
export const isOutsideWindow = (from: number, to: number, { rows }: Pick<EntityFeedback, 'rows'>): boolean =>
  rows.some(({ mentionTime }) => {
    const time = toMillis(String(mentionTime))
    return time < from - day || time > to + day
  })

export const ignoredWindowError: ApiError = {
  _tag: 'Decode',
  path: '$.data.entities',
  message: 'the service does not heed fromDate and toDate: rows from other times come with them',
}

/** The answer is about somebody else. */
export const otherEntityError: ApiError = {
  _tag: 'Decode',
  path: '$.data.entities.id',
  message: 'the answer is about another than was asked for',
}

const otherWindowError = ({ from, to }: FeedbackRequest): ApiError => ({
  _tag: 'Decode',
  path: '$.data.filter',
  message: `not the time from ${toInstant(from)} to ${toInstant(to)} that was asked for`,
})

/** A sign that an answer may not be to the request: what in the service's habits it goes against. */
type Inconsistency = { readonly trait: 'time' | 'names' | 'members'; readonly error: ApiError }

/**
 * Holds each answer against its request and asks twice more where it seems to be another's. Nobody promises that the echo is
 * exact, or that an entity is called as it was asked for: a habit that the service has shown must be kept; one that it never had is let be.
 */
export const withConsistencyCheck = (fetch: FetchFeedback): FetchFeedback => {
  const habits = new Map<Inconsistency['trait'], boolean>()
  const asked = new Set<string>()

  const ofTime = (
    request: FeedbackRequest,
    { window, entities: listings }: FeedbackPage,
  ): ReadonlyArray<Inconsistency> => {
    const { from, to } = request
    const habit = 'time'
    if (window?.from === from && window.to === to) habits.set(habit, true)
    // A service may narrow what it is asked.
    if (window !== undefined && (window.from < from || window.to > to))
      return [{ trait: habit, error: otherWindowError(request) }]
    return habits.get(habit) === true && listings.some((listing) => isOutsideWindow(from, to, listing))
      ? [{ trait: habit, error: ignoredWindowError }]
      : []
  }

  const ofEntity = (
    { kind, ids }: FeedbackRequest,
    { entities: listings }: FeedbackPage,
  ): ReadonlyArray<Inconsistency> => {
    const [id = '', ...others] = ids
    if (listings.some((listing) => ids.includes(listing.id))) habits.set('names', true)
    if (others.length > 0 || listings.some((listing) => listing.id === id)) return []
    // What is listed of a roll-up may be what it is made of, and that may have been asked for too.
    return listings.length === 1 && listings.some((listing) => asked.has(listing.id))
      ? [{ trait: kind === 'entity' ? 'members' : 'names', error: otherEntityError }]
      : []
  }

  const attempt = (request: FeedbackRequest, tries: number): TaskEither<ApiError, FeedbackPage> =>
    pipe(
      fetch(request),
      TE.flatMap((page) => {
        const signs = [...ofTime(request, page), ...ofEntity(request, page)]
        const doubts = signs.filter(({ trait }) => habits.get(trait) !== false)
        if (doubts.length === 0) return TE.right(page)
        if (tries < maxConsistencyAttempts) return attempt(request, tries + 1)
        const broken = doubts.find(({ trait }) => habits.get(trait) === true)
        if (broken !== undefined) return TE.left(broken.error)
        for (const { trait } of doubts) habits.set(trait, false)
        return TE.right(page)
      }),
    )

  return (request) => {
    for (const id of request.ids) asked.add(id)
    return attempt(request, 1)
  }
}
