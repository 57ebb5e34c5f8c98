import { parse, stringify } from 'lossless-json'

type Line = {
  readonly type: string
  readonly record?: { readonly stream: string; readonly data: Record<string, unknown> }
  readonly state?: {
    readonly stream: { readonly stream_descriptor: { readonly name: string }; readonly stream_state: unknown }
  }
  readonly log?: { readonly level: string; readonly message: string }
  readonly trace?: {
    readonly type: string
    readonly estimate?: { readonly name: string; readonly type: string; readonly row_estimate: number }
    readonly stream_status?: { readonly stream_descriptor: { readonly name: string }; readonly status: string }
    readonly error?: { readonly failure_type: string; readonly message: string }
  }
}

const exact = (digits: string) =>
  Number.isSafeInteger(Number(digits)) || !/^-?\d+$/.test(digits) ? Number(digits) : BigInt(digits)

/** JSON with every integer exact. */
export const parseExact = (text: string): unknown => parse(text, null, exact)
export const printExact = (value: unknown): string => stringify(value) ?? ''

/** The complete lines that a program printed. */
export const messages = (stdout: string): ReadonlyArray<Line> =>
  stdout
    .split('\n')
    .slice(0, -1)
    .map((line) => parseExact(line) as Line)

/** A destination in memory: deduplicates reviews by id and applies deletions, run after run. */
export const destination = () => {
  const reviews = new Map<string, { readonly modifiedTime: number; readonly data: unknown }>()
  const deleted = new Map<string, number>()
  let state: ReadonlyMap<string, unknown> = new Map()
  return {
    /** Loads a run's output up to its last state, like a platform that drops the rest. */
    load: (stdout: string): void => {
      const lines = messages(stdout)
      const last = lines.findLastIndex(({ type }) => type === 'STATE')
      const states = new Map(state)
      lines.forEach(({ record, state: message }, i) => {
        if (i > last) return
        if (message !== undefined) states.set(message.stream.stream_descriptor.name, message.stream.stream_state)
        if (record === undefined) return
        const id = String(record.data.id)
        const time = Date.parse(String(record.data.modifiedTime))
        if (record.stream === 'deleted_reviews') deleted.set(id, Math.max(time, deleted.get(id) ?? 0))
        if (record.stream === 'reviews' && time >= (reviews.get(id)?.modifiedTime ?? 0))
          reviews.set(id, { modifiedTime: time, data: record.data })
      })
      state = states
    },
    /** In the form that `read --state` takes. */
    state: (): unknown =>
      [...state].map(([name, stream_state]) => ({
        type: 'STREAM',
        stream: { stream_descriptor: { name }, stream_state },
      })),
    /** The reviews that are not deleted, sorted, each as `id modifiedTime`. */
    alive: (): ReadonlyArray<string> =>
      [...reviews]
        .filter(([id, { modifiedTime }]) => (deleted.get(id) ?? 0) < modifiedTime)
        .map(([id, { modifiedTime }]) => `${id} ${new Date(modifiedTime).toISOString()}`)
        .sort(),
  }
}

export type Fields = Readonly<Record<string, unknown>>

/** A warehouse: one table a stream, the newest record of each key, and the states that were printed. */
export const warehouse = () => {
  const tables = new Map<string, Map<string, Fields>>()
  const states = new Map<string, unknown>()
  return {
    /** Loads a run's output; returns the number of records of each stream. */
    load: (stdout: string, keys: Readonly<Record<string, ReadonlyArray<string>>>): Readonly<Record<string, number>> => {
      const counts: Record<string, number> = {}
      for (const { record, state } of messages(stdout)) {
        if (state !== undefined) states.set(state.stream.stream_descriptor.name, state.stream.stream_state)
        if (record === undefined) continue
        const { stream, data } = record
        const table = tables.get(stream) ?? new Map<string, Fields>()
        tables.set(stream, table)
        table.set((keys[stream] ?? []).map((key) => String(data[key])).join(' '), data)
        counts[stream] = (counts[stream] ?? 0) + 1
      }
      return counts
    },
    rows: (stream: string): ReadonlyArray<Fields> => [...(tables.get(stream)?.values() ?? [])],
    /** In the form that `read --state` takes. */
    state: (): unknown =>
      [...states].map(([name, stream_state]) => ({
        type: 'STREAM',
        stream: { stream_descriptor: { name }, stream_state },
      })),
  }
}
