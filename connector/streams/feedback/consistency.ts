import { pipe } from 'fp-ts/function'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import { type ApiError, toInstant, toMillis } from '../../api'
import type { EntityFeedback, FeedbackPage, FeedbackRequest } from './page'

type FetchFeedback = (request: FeedbackRequest) => TaskEither<ApiError, FeedbackPage>

const day = 86_400_000
const maxConsistencyAttempts = 3

/** Whether rows lie more than a day outside the window (milliseconds): then splitting the window would never end. */
export const isOutsideWindow = (from: number, to: number, { rows }: Pick<EntityFeedback, 'rows'>): boolean =>
  rows.some(({ mentionTime }) => {
    const time = toMillis(String(mentionTime))
    return time < from - day || time > to + day
  })

export const ignoredWindowError: ApiError = {
  _tag: 'Decode',
  path: '$.data.entities',
  message: 'the service ignores fromDate and toDate: the answer has rows of other times',
}

export const otherEntityError: ApiError = {
  _tag: 'Decode',
  path: '$.data.entities.id',
  message: 'the answer is about another entity than the requested one',
}

const otherWindowError = ({ from, to }: FeedbackRequest): ApiError => ({
  _tag: 'Decode',
  path: '$.data.filter',
  message: `the answer is not of the requested window from ${toInstant(from)} to ${toInstant(to)}`,
})

/** What a service may or may not do: echo the requested window, list an entity by its id, list a roll-up as itself. */
type Trait = 'echoes window' | 'keeps ids' | 'keeps roll-up ids'

/** A sign that an answer belongs to another request, and the trait of the service that it contradicts. */
type Inconsistency = { readonly trait: Trait; readonly error: ApiError }

/**
 * Checks each answer against its request, and requests it up to twice more if it seems to belong to another one. The
 * specification does not promise that the echo is exact, or that an answer has the requested ids; so traits are learned. A
 * trait that an answer has shown is required from then on. One that no answer has shown by the last attempt is not required.
 */
export const withConsistencyCheck = (fetch: FetchFeedback): FetchFeedback => {
  /** The learned traits: true if an answer has shown it, false if it is not required. */
  const traits = new Map<Trait, boolean>()
  const requestedIds = new Set<string>()

  const checkWindow = (request: FeedbackRequest, { window, entities }: FeedbackPage): ReadonlyArray<Inconsistency> => {
    const { from, to } = request
    const trait = 'echoes window'
    if (window?.from === from && window.to === to) traits.set(trait, true)
    // A narrower window is allowed.
    if (window !== undefined && (window.from < from || window.to > to))
      return [{ trait, error: otherWindowError(request) }]
    return traits.get(trait) === true && entities.some((feedback) => isOutsideWindow(from, to, feedback))
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
