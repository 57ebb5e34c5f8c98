import type { ReaderEvent } from '../../cdk/stream'

/** Something that somebody should know, though the run goes on. */
export const warningEvent = (message: string): ReaderEvent => ({ _tag: 'Note', level: 'warn', message })

export const filtersChangedWarning = (stream: string): ReaderEvent =>
  warningEvent(
    `${stream}: feedback_filters have changed since the last run. What they newly let through is read only as far back as feedback_lookback_days; refresh the stream to read it all.`,
  )

export const cursorAheadWarning = (stream: string): ReaderEvent =>
  warningEvent(
    `${stream}: its cursor lies ahead of the service's time, so nothing is read until then. If that is a mistake, refresh the stream.`,
  )

export const noEntitiesWarning = (stream: string): ReaderEvent =>
  warningEvent(`${stream}: the config names no entities, so there is nothing to read. Set entities.`)
