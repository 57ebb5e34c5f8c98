import { findDifferences } from './differences'
import type { DeclaredStream, RunEvent } from './events'

/** What a run printed about its streams, and the problems found. */
type CheckedRun = {
  readonly problems: ReadonlyArray<string>
  readonly records: ReadonlyMap<string, ReadonlyArray<Readonly<Record<string, unknown>>>>
  /** The last state of each stream; the last state of all streams is under undefined. */
  readonly states: ReadonlyMap<string | undefined, unknown>
}

/** The check of a run, as far as its events have been seen. */
type Check = {
  readonly hasStatuses: boolean
  readonly problems: Array<string>
  readonly records: Map<string, Array<Readonly<Record<string, unknown>>>>
  readonly states: Map<string | undefined, unknown>
  readonly declared: Map<string, DeclaredStream>
  /** The last status of each stream. */
  readonly statuses: Map<string, string>
  /** How many records of a stream are not yet covered by a state. */
  readonly uncovered: Map<string, number>
}

/**
 * Checks a run: each record fits the stream declared before it, states count correctly and follow the last record, and
 * if the protocol has statuses, each stream starts and completes.
 */
export const checkEvents = (
  events: ReadonlyArray<RunEvent>,
  catalog: ReadonlyArray<DeclaredStream>,
  hasStatuses: boolean,
): CheckedRun => {
  const check: Check = {
    hasStatuses,
    problems: [],
    records: new Map(catalog.map(({ name }) => [name, []])),
    states: new Map(),
    declared: new Map(hasStatuses ? catalog.map((stream) => [stream.name, stream]) : []),
    statuses: new Map(),
    uncovered: new Map(),
  }
  for (const [i, event] of events.entries()) checkEvent(check, event, i + 1)
  for (const stream of catalog) checkEnd(check, stream)
  return check
}

const checkEvent = (check: Check, event: RunEvent, line: number): void => {
  const { problems, records, declared, statuses } = check
  switch (event.type) {
    case 'schema':
      declared.set(event.stream.name, event.stream)
      if (!records.has(event.stream.name)) problems.push(`${event.stream.name} is not in the catalog`)
      return
    case 'record':
      checkRecord(check, event.stream, event.record)
      return
    case 'state':
      checkState(check, event)
      return
    case 'status':
      statuses.set(event.stream, event.status)
      return
    case 'error':
      problems.push(event.message)
      return
    case 'unreadable':
      problems.push(`line ${line} of stdout is not a message of the protocol`)
  }
}

const checkRecord = (check: Check, name: string, record: Readonly<Record<string, unknown>>): void => {
  const { hasStatuses, problems, records, declared, statuses, uncovered } = check
  const stream = declared.get(name)
  if (stream === undefined) {
    problems.push(`${name} is not declared before its first record`)
    return
  }
  if (hasStatuses && !['STARTED', 'RUNNING'].includes(statuses.get(name) ?? ''))
    problems.push(`${name} has a record before its status STARTED or after its end`)
  for (const attribute of stream.key)
    if ((record[attribute] ?? null) === null) problems.push(`${name} has a record without its key ${attribute}`)
  problems.push(...findDifferences(stream.schema, record, name))
  records.get(name)?.push(record)
  uncovered.set(name, (uncovered.get(name) ?? 0) + 1)
}

const checkState = (
  { problems, states, uncovered }: Check,
  { stream, state, count }: Extract<RunEvent, { readonly type: 'state' }>,
): void => {
  const expected = stream === undefined ? undefined : (uncovered.get(stream) ?? 0)
  if (count !== undefined && count !== expected)
    problems.push(`${stream} has a state that counts ${count} records after ${expected}`)
  if (stream === undefined) uncovered.clear()
  else uncovered.delete(stream)
  states.set(stream, state)
}

const checkEnd = (check: Check, { name, isIncremental }: DeclaredStream): void => {
  const { hasStatuses, problems, declared, statuses, uncovered } = check
  if (!declared.has(name)) problems.push(`${name} has no SCHEMA`)
  if (isIncremental && (uncovered.get(name) ?? 0) > 0) problems.push(`${name} has no state after its last record`)
  if (hasStatuses && statuses.get(name) !== 'COMPLETE') problems.push(`${name} does not end with the status COMPLETE`)
}
