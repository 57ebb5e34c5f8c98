/**
 * Reads a list that changes while it is read, without loss; knows no operation of the service
 * (docs/how-reading-works.md). In: a `List` that fetches pages, and where to start or go on. Out: pages of rows, each
 * with the token to go on from.
 */
export {
  ceilToSecond,
  chooseCutoff,
  cursorSlack,
  filterFrom,
  floorToSecond,
  nextCursor,
  type RunNote,
} from './clock'
export type { Completion, ReadItem } from './item'
export type { Bounds, List, ListError, ListPage, PageRequest, Window } from './list'
export { overlapSize } from './pages'
export { type ReadStart, read } from './read'
export { leavesOutRows } from './requests'
export {
  createWindowToken,
  decodeResumeToken,
  digestFilters,
  isResumable,
  leastAdvancedToken,
  ResumeToken,
  readStartTime,
} from './resume-token'
export { isInRange, matchesSentRow, SentRange, SentRows } from './sent-rows'
export type { ReadEnv } from './session'
