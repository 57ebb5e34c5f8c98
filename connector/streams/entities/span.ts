import type { EntityKind } from './entity'

/** A window of time to be read for some entities of one kind; milliseconds, `from` at a whole second. */
export type FeedbackWindow = {
  readonly kind: EntityKind
  readonly ids: ReadonlyArray<string>
  readonly from: number
  /** None: up to the run's signpost. Such a window is its entities' last. */
  readonly to: number | undefined
  /** Rows that a longer answer showed of the only entity; `tries`: how often an answer lacked some of them. */
  readonly expectedRows?: ReadonlyArray<ExpectedRow>
  readonly attempts?: number
}

/** A row's key and its time, milliseconds. */
export type ExpectedRow = { readonly key: string; readonly time: number }

const second = 1000

/** Whether a window that ends at `to` is longer than the one second that is not cut any more. */
export const isSplittable = ({ from }: FeedbackWindow, to: number): boolean => to - from > second + 1

/** A window in up to `count` parts, in the order of time; they overlap by a millisecond, since neither bound is known to be inclusive. */
export const splitFeedbackWindow = (task: FeedbackWindow, to: number, count: number): ReadonlyArray<FeedbackWindow> => {
  const seconds = Math.ceil((to - 1 - task.from) / second)
  const parts = Math.min(count, seconds)
  const edge = (n: number): number => task.from + Math.floor((n * seconds) / parts) * second
  return Array.from({ length: parts }, (_, n) => ({
    ...task,
    from: edge(n),
    to: n === parts - 1 ? task.to : edge(n + 1) + 1,
  }))
}

/** The same window for at most `size` entities at a time. */
export const splitIdentifiers = (task: FeedbackWindow, size: number): ReadonlyArray<FeedbackWindow> =>
  task.ids.length <= size
    ? [task]
    : Array.from({ length: Math.ceil(task.ids.length / size) }, (_, n) => ({
        ...task,
        ids: task.ids.slice(n * size, (n + 1) * size),
      }))
