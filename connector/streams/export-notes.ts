import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import { toInstant } from '../api/model/scalar'
import type { FetchPage } from '../api/page'
import type { ScanItem } from '../api/scan'
import type { Demand, Reading } from '../cdk/stream'
import { warn } from './entities/notes'
import type { Standing } from './export-state'

/** Said once, with the last item, when the service's time is known. */
export const warnings = (
  { demand, standing }: { readonly demand: Pick<Demand<never>, 'stream'>; readonly standing: Standing },
  digest: string,
  { last }: ScanItem,
): ReadonlyArray<Reading> => {
  if (last === undefined) return []
  const changed = O.isSome(standing.filters) && standing.filters.value !== digest
  const ahead = O.isSome(standing.cursor) && standing.cursor.value > last.signpost
  return [
    ...(changed
      ? [
          warn(
            `${demand.stream}: the filters of the config have changed since the last run. What they newly let through is read only where it changes from now on; refresh the stream to read it all.`,
          ),
        ]
      : []),
    ...(ahead && O.isSome(standing.cursor)
      ? [
          warn(
            `${demand.stream}: its cursor ${toInstant(standing.cursor.value)} lies ahead of the service's time, so nothing is read until then. If that is a mistake, refresh the stream.`,
          ),
        ]
      : []),
  ]
}

/** Passes pages on and keeps what is worth a warning, each once: attributes nobody declared, a filter that was not applied. */
export const noticing = (
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
        for (const path of answer.right.unknown)
          notice(`The service sent an attribute this version does not know: ${path}.`)
        for (const key of answer.right.narrowed ?? [])
          notice(`The service applied a narrower ${key} than was asked for: what it leaves out is not read.`)
      }
      return answer
    },
    drain: () => fresh.splice(0),
  }
}
