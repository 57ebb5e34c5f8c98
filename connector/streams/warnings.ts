import * as O from 'fp-ts/Option'
import * as t from 'io-ts'
import { describeAttribute, optionalAttributes } from '../api'
import type { ReaderEvent, Row } from '../cdk'
import { type ExportPage, type FetchPage, pickRecordAttributes } from '../export'
import type { ExportStreamState } from './export-state'
import { watchPages } from './watch-pages'

/** A note that the user should read; the run goes on. */
export const warningEvent = (message: string): ReaderEvent => ({ _tag: 'Note', level: 'warn', message })

export const filtersChangedWarning = (stream: string): ReaderEvent =>
  warningEvent(
    `${stream}: feedback_filters have changed since the last run. Rows that only the new filters let through are read only as far back as feedback_lookback_days; refresh the stream to read them all.`,
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
          `${stream}: the filters of the config have changed since the last run. Reviews that only the new filters let through are read only if they change from now on; refresh the stream to read them all.`,
        ),
      ]
    : []

/** How many undeclared attributes a stream names: a service may send any number of them. */
const maxNamedAttributes = 20

/** Messages about undeclared attributes, each once; the last of them says that there are more. */
export const collectUnknownAttributes = (): ((paths: ReadonlyArray<string>) => ReadonlyArray<string>) => {
  const named = new Set<string>()
  let isFull = false
  const nameAttribute = (path: string): ReadonlyArray<string> => {
    if (isFull || named.has(path)) return []
    isFull = named.size === maxNamedAttributes
    if (isFull) return ['The service sent more attributes this version does not know; they are not named here.']
    named.add(path)
    return [`The service sent an attribute this version does not know: ${path}.`]
  }
  return (paths) => paths.flatMap(nameAttribute)
}

/** What a page gives to warn of. `kind`: of each one is given, although texts may differ. */
type PageWarning = { readonly kind: string; readonly message: string }

const narrowerWarnings = ({ narrowerFilters = [] }: ExportPage): ReadonlyArray<PageWarning> =>
  narrowerFilters.map((key) => ({
    kind: `narrower ${key}`,
    message: `The service applied a narrower ${key} than was asked for: reviews outside it are not read.`,
  }))

/**
 * Passes pages on and collects their warnings, each once; `drain` returns those that are new since its last call.
 * `hasNested`: whether an object inside a record of any page so far had an attribute that is not declared.
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

/** The member of a record that collects its undeclared attributes. */
export const UnknownAttributes = optionalAttributes({
  unknown_attributes: describeAttribute('Attributes the service sent that this version does not know, as they came')(
    t.UnknownRecord,
  ),
})

/** Leaves only the selected top-level attributes of a row; none selected: all of them. */
export const selectAttributes = (attributes: O.Option<ReadonlySet<string>>): ((row: Row) => Row) => {
  if (O.isNone(attributes)) return (row) => row
  const selected = attributes.value
  const pickAttributes = pickRecordAttributes(selected)
  return ({ json, changes = [] }) => {
    const selectedChanges = changes.filter(({ field }) => selected.has(field.split('.')[0] ?? ''))
    return { json: pickAttributes(json), ...(selectedChanges.length === 0 ? {} : { changes: selectedChanges }) }
  }
}
