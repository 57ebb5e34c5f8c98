import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import { toInstant } from '../api'
import type { ReaderEvent, StreamRequest } from '../cdk'
import type { FetchPage, ScanItem } from '../export'
import type { ExportStreamState } from './export-state'

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

/** Said once, with the last item, when the service's time is known. */
export const scanWarnings = (
  { demand, standing }: { readonly demand: Pick<StreamRequest<never>, 'stream'>; readonly standing: ExportStreamState },
  digest: string,
  { completion }: ScanItem,
): ReadonlyArray<ReaderEvent> => {
  if (completion === undefined) return []
  const changed = O.isSome(standing.filtersDigest) && standing.filtersDigest.value !== digest
  const ahead = O.isSome(standing.cursor) && standing.cursor.value > completion.signpost
  return [
    ...(changed
      ? [
          warningEvent(
            `${demand.stream}: the filters of the config have changed since the last run. What they newly let through is read only where it changes from now on; refresh the stream to read it all.`,
          ),
        ]
      : []),
    ...(ahead && O.isSome(standing.cursor)
      ? [
          warningEvent(
            `${demand.stream}: its cursor ${toInstant(standing.cursor.value)} lies ahead of the service's time, so nothing is read until then. If that is a mistake, refresh the stream.`,
          ),
        ]
      : []),
  ]
}

/** Passes pages on and keeps what is worth a warning, each once: attributes nobody declared, a filter that was not applied. */
export const collectPageWarnings = (
  fetch: FetchPage,
): { readonly fetch: FetchPage; readonly drain: () => ReadonlyArray<string> } => {
  const known = new Set<string>()
  const fresh: string[] = []
  const notice = (message: string) => {
    if (known.has(message)) return
    known.add(message)
    fresh.push(message)
  }
  return {
    fetch: (request, turn) => async () => {
      const answer = await fetch(request, turn)()
      if (E.isRight(answer)) {
        for (const path of answer.right.unknownPaths)
          notice(`The service sent an attribute this version does not know: ${path}.`)
        for (const key of answer.right.narrowerFilters ?? [])
          notice(`The service applied a narrower ${key} than was asked for: what it leaves out is not read.`)
      }
      return answer
    },
    drain: () => fresh.splice(0),
  }
}
