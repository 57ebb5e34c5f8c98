import { messages } from './destination'

export type Fields = Readonly<Record<string, unknown>>

/** A warehouse: one table a stream, the newest record of each key, and the states that were printed. */
export const warehouse = () => {
  const tables = new Map<string, Map<string, Fields>>()
  const states = new Map<string, unknown>()
  return {
    /** Loads a run's output; answers how many records of each stream there were. */
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
