import { findDifferences } from './differences'
import type { DeclaredStream, RunEvent } from './events'

/** What a run printed of its streams, and what was wrong with it. */
type CheckedRun = {
  readonly problems: ReadonlyArray<string>
  readonly records: ReadonlyMap<string, ReadonlyArray<Readonly<Record<string, unknown>>>>
  /** The last state of each stream; under undefined, the last of all streams. */
  readonly states: ReadonlyMap<string | undefined, unknown>
}

/**
 * Goes through a run: each record fits the stream that was declared before it, states count right and follow the last
 * record, and where the protocol has statuses each stream starts and completes.
 */
export const checkEvents = (
  events: ReadonlyArray<RunEvent>,
  catalog: ReadonlyArray<DeclaredStream>,
  hasStatuses: boolean,
): CheckedRun => {
  const problems: string[] = []
  const declared = new Map(hasStatuses ? catalog.map((stream) => [stream.name, stream]) : [])
  const records = new Map<string, Array<Readonly<Record<string, unknown>>>>(catalog.map(({ name }) => [name, []]))
  const statuses = new Map<string, string>()
  const states = new Map<string | undefined, unknown>()
  /** How many records no state covers yet. */
  const uncovered = new Map<string, number>()

  const checkRecord = (name: string, record: Readonly<Record<string, unknown>>): void => {
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

  events.forEach((event, i) => {
    switch (event.type) {
      case 'schema':
        declared.set(event.stream.name, event.stream)
        if (!records.has(event.stream.name)) problems.push(`${event.stream.name} is not in the catalog`)
        return
      case 'record':
        checkRecord(event.stream, event.record)
        return
      case 'state': {
        const { stream, state, count } = event
        const expected = stream === undefined ? undefined : (uncovered.get(stream) ?? 0)
        if (count !== undefined && count !== expected)
          problems.push(`${stream} has a state that counts ${count} records after ${expected}`)
        if (stream === undefined) uncovered.clear()
        else uncovered.delete(stream)
        states.set(stream, state)
        return
      }
      case 'status':
        statuses.set(event.stream, event.status)
        return
      case 'error':
        problems.push(event.message)
        return
      case 'unreadable':
        problems.push(`line ${i + 1} of stdout is no message of the protocol`)
    }
  })

  for (const { name, isIncremental } of catalog) {
    if (!declared.has(name)) problems.push(`${name} has no SCHEMA`)
    if (isIncremental && (uncovered.get(name) ?? 0) > 0) problems.push(`${name} has no state after its last record`)
    if (hasStatuses && statuses.get(name) !== 'COMPLETE') problems.push(`${name} does not end with the status COMPLETE`)
  }
  return { problems, records, states }
}
