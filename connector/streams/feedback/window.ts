import type { Either } from 'fp-ts/Either'
import type { ApiError } from '../../api'
import type { Entity, EntityKind } from './entities'
import type { EntityFeedback, FeedbackOperation } from './page'

/** A window of time to read for some entities of one kind; milliseconds, `from` at a whole second. */
export type FeedbackWindow = {
  readonly kind: EntityKind
  readonly ids: ReadonlyArray<string>
  readonly from: number
  /** None: up to the run's cutoff. Such a window is the last one of its entities. */
  readonly to: number | undefined
  /** Rows of the only entity that an answer for a longer window had. */
  readonly expectedRows?: ReadonlyArray<ExpectedRow>
  /** Which attempt to read the window this is, counted while answers lack expected rows. */
  readonly attempt?: number
}

/** The key of a row, and its mention time in milliseconds. */
export type ExpectedRow = { readonly key: string; readonly time: number }

/** What the service answered for one entity in a window. */
export type EntityResult = {
  readonly kind: EntityKind
  readonly id: string
  /** The window's end in milliseconds; none: the run's cutoff, and the entity is complete. */
  readonly to: number | undefined
  /** Its feedback, or why the service refuses it. None: the service does not know the entity. */
  readonly feedback: Either<ApiError, EntityFeedback | undefined>
}

export const toEntityResult = (
  { kind, to }: FeedbackWindow,
  id: string,
  feedback: EntityResult['feedback'],
): EntityResult => ({ kind, id, to, feedback })

const second = 1000

/** Whether a window that ends at `to` can be split: one of a single second cannot. */
export const isSplittable = ({ from }: FeedbackWindow, to: number): boolean => to - from > second + 1

/** A window in up to `count` parts, in order of time; they overlap by a millisecond, since it is not known whether the bounds are inclusive. */
export const splitFeedbackWindow = (
  window: FeedbackWindow,
  to: number,
  count: number,
): ReadonlyArray<FeedbackWindow> => {
  const seconds = Math.ceil((to - 1 - window.from) / second)
  const parts = Math.min(count, seconds)
  const boundary = (n: number): number => window.from + Math.floor((n * seconds) / parts) * second
  return Array.from({ length: parts }, (_, n) => ({
    ...window,
    from: boundary(n),
    to: n === parts - 1 ? window.to : boundary(n + 1) + 1,
  }))
}

/** The same window for at most `size` entities at a time. */
export const splitIdentifiers = (window: FeedbackWindow, size: number): ReadonlyArray<FeedbackWindow> =>
  window.ids.length <= size
    ? [window]
    : Array.from({ length: Math.ceil(window.ids.length / size) }, (_, n) => ({
        ...window,
        ids: window.ids.slice(n * size, (n + 1) * size),
      }))

/** The first windows of a run: entities of one kind that begin at the same time (`fromOf`, milliseconds) share one. */
export const groupEntities = (
  { maxIdentifiers }: FeedbackOperation,
  entities: ReadonlyArray<Entity>,
  fromOf: (entity: Entity) => number,
): ReadonlyArray<FeedbackWindow> => {
  const groups = new Map<string, { readonly kind: EntityKind; readonly from: number; readonly ids: string[] }>()
  for (const entity of entities) {
    const from = fromOf(entity)
    const key = `${entity.kind} ${from}`
    const group = groups.get(key) ?? { kind: entity.kind, from, ids: [] }
    group.ids.push(entity.id)
    groups.set(key, group)
  }
  return [...groups.values()].flatMap((group) => splitIdentifiers({ ...group, to: undefined }, maxIdentifiers))
}
