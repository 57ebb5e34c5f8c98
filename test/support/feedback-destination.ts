import * as O from 'fp-ts/Option'
import type { SourceState } from '../../connector/cdk/catalog'
import type { Message } from '../../connector/cdk/message'
import { readStreams } from '../../connector/cdk/read'
import type { Stream } from '../../connector/cdk/stream'
import type { SourceEnv } from '../../connector/streams/source-env'
import { parseExact } from './destination'

type SentRecord = {
  readonly entityType: string
  readonly entityId: string
  readonly id?: bigint
  readonly documentId?: bigint
  readonly source: string
  readonly response?: { readonly responseText?: string } | null
}

/** How a run ends before its time: killed, or asked to stop, after so many messages. */
export type RunEnd = { readonly after: number; readonly how: 'kill' | 'stop' }

/** A destination that dedups by key, fed by runs that may be cut short; holds what a platform would after each. */
export const createFeedbackDestination = () => {
  const rows = new Map<string, string>()
  let state: SourceState = {}
  return {
    rows,
    state: () => state,
    /** One run; answers how many records it sent and what went wrong. */
    run: async (
      stream: Stream<SourceEnv>,
      source: SourceEnv,
      end?: RunEnd,
      cadence = { records: 7, millis: 5_000 },
    ) => {
      const stop = new AbortController()
      const messages: Message[] = []
      let records = 0
      const failures: string[] = []
      const logs: string[] = []
      for await (const message of readStreams({
        streams: [stream],
        env: source,
        catalog: [{ name: stream.name, syncMode: 'incremental', attributes: O.none }],
        state,
        now: source.now,
        checkpointInterval: cadence,
        stop: stop.signal,
        onWait: () => () => undefined,
      })) {
        messages.push(message)
        // A consumer is slow now and then: the reader runs ahead of what has been taken.
        if (messages.length % 3 === 0) await new Promise((resolve) => setImmediate(resolve))
        if (message._tag === 'Records')
          for (const { json } of message.rows) {
            const row = parseExact(Buffer.from(json).toString()) as SentRecord
            records += 1
            rows.set(
              `${row.entityType} ${row.entityId} ${row.id ?? row.documentId}`,
              `${row.source} ${row.response?.responseText ?? null}`,
            )
          }
        if (message._tag === 'Checkpoint') state = JSON.parse(JSON.stringify({ [message.stream]: message.state }))
        if (message._tag === 'Failed') failures.push(message.failure.message)
        if (message._tag === 'Log') logs.push(message.message)
        if (end !== undefined && messages.length >= end.after) {
          if (end.how === 'kill') break
          stop.abort()
        }
      }
      return { records, failures, logs, messages }
    },
  }
}
