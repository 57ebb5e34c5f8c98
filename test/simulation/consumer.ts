import { createLineReader, parseLine } from './lines'

/** What the lines of one run contained besides records. */
export type RunOutput = {
  /** Everything but records. */
  readonly talk: ReadonlyArray<string>
  /** The last status of each stream; only for Airbyte. */
  readonly statuses: Readonly<Record<string, string>>
  readonly failureTypes: ReadonlyArray<string>
  readonly states: number
  readonly records: number
}

/** A platform with its destination: keeps the rows up to the last state, and that state, as every destination does. */
export type Consumer = {
  /** Starts with the output of another run. Returns where its bytes go and what they contained. */
  readonly open: () => { readonly take: (bytes: Buffer) => void; readonly output: () => RunOutput }
  /** The state from which to continue; undefined at first. */
  readonly state: () => unknown
}

/** A record of a stream. */
export type Row = { readonly stream: string; readonly data: Readonly<Record<string, unknown>> }

export const createConsumer = (
  protocol: 'airbyte' | 'singer',
  report: (oracle: string, what: string) => void,
  /** Takes a row that a state covers. */
  keep: (row: Row) => void,
  /** Called with each row as soon as it is read. */
  noteRow: (row: Row) => void = () => undefined,
  /** Called with each stream's state once the rows that it covers were taken. */
  noteState: (stream: string, state: unknown) => void = () => undefined,
): Consumer => {
  const airbyteStates = new Map<string, unknown>()
  let singerState: unknown

  const open: Consumer['open'] = () => {
    let waiting: Row[] = []
    const counts = new Map<string, number>()
    const talk: string[] = []
    const statuses: Record<string, string> = {}
    const failureTypes: string[] = []
    let [states, records] = [0, 0]

    const takeRow = (row: Row): void => {
      waiting.push(row)
      noteRow(row)
      counts.set(row.stream, (counts.get(row.stream) ?? 0) + 1)
      records += 1
    }
    const commitRows = (covers: (row: Row) => boolean): void => {
      for (const row of waiting.filter(covers)) keep(row)
      waiting = waiting.filter((row) => !covers(row))
      states += 1
    }
    const takeLine = (line: string): void => {
      const message = parseLine(line, report)
      if (message.type === 'RECORD')
        return void takeRow(
          protocol === 'airbyte'
            ? { stream: message.record.stream, data: message.record.data }
            : { stream: message.stream, data: message.record },
        )
      talk.push(line)
      if (message.type === 'STATE' && protocol === 'singer') {
        commitRows(() => true)
        singerState = message.value
        for (const [stream, state] of Object.entries(message.value.bookmarks ?? {})) noteState(stream, state)
      } else if (message.type === 'STATE') {
        const { name } = message.state.stream.stream_descriptor
        const count = message.state.sourceStats?.recordCount
        if (count !== undefined && count !== (counts.get(name) ?? 0))
          report('counts', `the state of ${name} counts ${count} records, and ${counts.get(name) ?? 0} came`)
        counts.set(name, 0)
        commitRows(({ stream }) => stream === name)
        airbyteStates.set(name, message.state)
        noteState(name, message.state.stream.stream_state)
      } else if (message.type === 'TRACE') {
        const { stream_status: status, error } = message.trace
        if (status !== undefined) statuses[status.stream_descriptor.name] = status.status
        if (error !== undefined) failureTypes.push(error.failure_type)
      }
    }
    return {
      take: createLineReader(takeLine),
      output: () => ({ talk, statuses, failureTypes, states, records }),
    }
  }

  return {
    open,
    state: () =>
      protocol === 'singer' ? singerState : airbyteStates.size === 0 ? undefined : [...airbyteStates.values()],
  }
}

/** The rows of both exports, as a table that is merged holds them. */
export type ReviewTables = {
  readonly keep: (row: Row) => void
  /** The newest version of each review, and the deletions, as `id time`. */
  readonly reviews: ReadonlyMap<string, { readonly modified: number; readonly isDeleted: boolean }>
  readonly deleted: ReadonlySet<string>
  /** This version of a review or a deletion is there, or a later one. */
  readonly holds: (stream: string, id: string, modified: number) => boolean
}

export const createReviewTables = (): ReviewTables => {
  const reviews = new Map<string, { modified: number; isDeleted: boolean }>()
  const deleted = new Set<string>()
  const deletions = new Map<string, number>()
  return {
    reviews,
    deleted,
    holds: (stream, id, modified) =>
      ((stream === 'deleted_reviews' ? deletions.get(id) : reviews.get(id)?.modified) ?? Number.NEGATIVE_INFINITY) >=
      modified,
    keep: ({ stream, data }) => {
      const [id, modified] = [String(data.id), Date.parse(String(data.modifiedTime))]
      if (stream === 'deleted_reviews') {
        deleted.add(`${id} ${modified}`)
        deletions.set(id, Math.max(modified, deletions.get(id) ?? modified))
        return
      }
      const isDeleted = (data._ab_cdc_deleted_at ?? data._sdc_deleted_at ?? null) !== null
      const held = reviews.get(id)
      if (held === undefined || modified >= held.modified) reviews.set(id, { modified, isDeleted })
    },
  }
}
