import * as O from 'fp-ts/Option'
import type { ReaderEvent } from '../cdk'
import type { ExportPage, FetchPage } from '../export'
import type { ExportStreamState } from './export-state'
import { collectUnknownAttributes } from './unknown-attributes'
import { watchPages } from './watch-pages'

/** A note that the user should read; the run goes on. */
export const warningEvent = (message: string): ReaderEvent => ({ _tag: 'Note', level: 'warn', message })

export const filtersChangedWarning = (stream: string): ReaderEvent =>
  warningEvent(
    `${stream}: feedback_filters have changed since the last run. Rows that only the new filters let ` +
      'through are read only as far back as feedback_lookback_days; refresh the stream to read them all.',
  )

export const noEntitiesWarning = (stream: string): ReaderEvent => ({
  _tag: 'Note',
  level: 'warn',
  message: `${stream}: the config names no entities, so there is nothing to read. Set entities.`,
  skipped: stream,
})

/** What a complete scan shows to be missing in a stream. */
export const stateWarnings = (
  stream: string,
  { filtersDigest }: ExportStreamState,
  currentDigest: string,
): ReadonlyArray<ReaderEvent> =>
  O.isSome(filtersDigest) && filtersDigest.value !== currentDigest
    ? [
        warningEvent(
          `${stream}: the filters of the config have changed since the last run. Reviews that only the new ` +
            'filters let through are read only if they change from now on; refresh the stream to read them all.',
        ),
      ]
    : []

/** Something in a page to warn about. Each `kind` is reported once, even if the texts differ. */
type PageWarning = { readonly kind: string; readonly message: string }

const narrowerWarnings = ({ narrowerFilters = [] }: ExportPage): ReadonlyArray<PageWarning> =>
  narrowerFilters.map((key) => ({
    kind: `narrower ${key}`,
    message: `The service applied a narrower ${key} than requested: reviews outside it are not read.`,
  }))

/**
 * Passes pages on and collects their warnings, each once; `drain` returns those that are new since its last call.
 * `hasNested`: on any page so far, an object inside a record had an undeclared attribute.
 */
export const collectPageWarnings = (
  fetch: FetchPage,
): { readonly fetch: FetchPage; readonly drain: () => ReadonlyArray<string>; readonly hasNested: () => boolean } => {
  const kinds = new Set<string>()
  let hasNested = false
  const pending: string[] = []
  const nameUnknown = collectUnknownAttributes()
  return {
    fetch: watchPages(fetch, (page) => {
      pending.push(...nameUnknown(page.unknownPaths))
      hasNested ||= page.unknownPaths.some((path) => path.includes('.'))
      for (const { kind, message } of narrowerWarnings(page)) {
        if (!kinds.has(kind)) pending.push(message)
        kinds.add(kind)
      }
    }),
    drain: () => pending.splice(0),
    hasNested: () => hasNested,
  }
}
