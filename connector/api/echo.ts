import type { ApiError } from './error'
import type { ExportFilter, ExportRequest } from './model/export'
import { toMillis } from './model/scalar'

/** The first sign that an answer is not to our request; an echo may leave out what it likes. */
export const checkEcho = (request: ExportRequest, echo: ExportFilter): ApiError | undefined => {
  const { modifiedTimeFrom, offset } = echo
  if (modifiedTimeFrom != null && toMillis(modifiedTimeFrom) !== toMillis(request.modifiedTimeFrom))
    return {
      _tag: 'Decode',
      path: '$.filter.modifiedTimeFrom',
      message: `not the ${request.modifiedTimeFrom} asked for`,
    }
  if (offset != null && offset !== (request.offset ?? 0))
    return { _tag: 'Decode', path: '$.filter.offset', message: `not the ${request.offset ?? 0} asked for` }
  return undefined
}

/** The attributes in which the service says that it selected less than asked; what was not asked for has defaults (Export filter echo). */
export const narrowerFilters = (request: ExportRequest, echo: ExportFilter): ReadonlyArray<string> => {
  const served = echo.sources == null ? undefined : new Set(echo.sources.map(Number))
  return [
    ...(served !== undefined && request.sources?.some((source) => !served.has(source)) ? ['sources'] : []),
    ...(isAfter(echo.mentionTimeAfter, request.mentionTimeAfter) ? ['mentionTimeAfter'] : []),
    ...(isAfter(request.mentionTimeBefore, echo.mentionTimeBefore) ? ['mentionTimeBefore'] : []),
  ]
}

const isAfter = (a: string | null | undefined, b: string | null | undefined): boolean =>
  a != null && b != null && toMillis(a) > toMillis(b)
