import type { SourceState } from '../../connector/cdk/catalog'
import type { Message } from '../../connector/cdk/message'
import type { Stream } from '../../connector/cdk/stream'
import type { SourceEnv } from '../../connector/streams/source-env'
import { parseExact } from './destination'
import { copyState, readMessages } from './in-process'

type SentRecord = {
  readonly entityType: string
  readonly entityId: string
  readonly id?: bigint
  readonly documentId?: bigint
  readonly source: string
  readonly response?: { readonly responseText?: string } | null
}

/** How a run ends early: killed, or asked to stop, after this many messages. */
export type RunEnd = { readonly after: number; readonly how: 'kill' | 'stop' }

/**
 * A destination that upserts by key, fed by runs that may end early; it keeps the state as a platform would after each.
 */
export const createFeedbackDestination = () => {
  const rows = new Map<string, string>()
  let state: SourceState = {}
  return {
    rows,
    state: () => state,
    /** Makes one run; returns how many records it sent, its failures and all its messages. */
    run: async (
      stream: Stream<SourceEnv>,
      source: SourceEnv,
      end?: RunEnd,
      checkpointInterval = { records: 7, millis: 5_000 },
    ) => {
      const stop = new AbortController()
      const messages: Message[] = []
      let records = 0
      const failures: string[] = []
      for await (const message of readMessages(source, [stream], { state, checkpointInterval, stop: stop.signal })) {
        messages.push(message)
        // A slow consumer: the reader runs ahead of the messages that have been consumed.
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
        if (message._tag === 'Checkpoint') state = copyState({ [message.stream]: message.state })
        if (message._tag === 'Failed') failures.push(message.failure.message)
        if (end !== undefined && messages.length >= end.after) {
          if (end.how === 'kill') break
          stop.abort()
        }
      }
      return { records, failures, messages }
    },
  }
}
