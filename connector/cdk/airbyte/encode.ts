import type { Failure } from '../failure'
import { printJsonText } from '../json/exact'
import { readMembersAt, readObjectMembers } from '../json/members'
import { jsonLine, type OutputText, wrapRows } from '../lines'
import type { LogLevel, Message, StateCounts } from '../message'
import { type EncodeOptions, emptyOutput, type MessageEncoder, printLines } from '../protocol'
import { defined } from '../schema'

/** The output of `check`. FAILED is for a config problem; any other failure is a trace. */
export const connectionStatusLine = (status: 'SUCCEEDED' | 'FAILED', message?: string): string =>
  jsonLine({ type: 'CONNECTION_STATUS', connectionStatus: { status, ...defined({ message }) } })

/** Airbyte's name for each class of failure. */
export const failureTypes = { Config: 'config_error', Transient: 'transient_error', System: 'system_error' } as const
const airbyteLogLevels: Record<LogLevel, string> = { error: 'ERROR', warn: 'WARN', info: 'INFO', debug: 'DEBUG' }

/** Prints messages as lines on stdout. Keeps no state. */
export const createAirbyteEncoder = ({ now }: EncodeOptions): MessageEncoder => {
  const encode = encodeAirbyte(now)
  return { encode: (message) => printLines(...encode(message)), end: () => emptyOutput }
}

/** A message as lines on stdout. `now`: milliseconds since 1970, for traces. */
export const encodeAirbyte =
  (now: () => number) =>
  (message: Message): ReadonlyArray<OutputText> => {
    switch (message._tag) {
      case 'Started':
        return [statusLine(now, message.stream.name, 'STARTED')]
      case 'Running':
        return [
          statusLine(now, message.stream, 'RUNNING'),
          ...(message.total === undefined ? [] : [estimateTraceLine(now, message.stream, message.total)]),
        ]
      case 'Records':
        return [recordLines(message)]
      case 'Checkpoint':
        return message.received === undefined
          ? [streamStateLine(message.stream, message.state, message.count)]
          : [addDestinationStats(message.received, message.counts)]
      case 'SharedCheckpoint':
        return message.received === undefined
          ? message.states.map(({ stream, state }) => streamStateLine(stream, state, Number.NaN))
          : [addDestinationStats(message.received, message.counts)]
      case 'Finished':
        return [statusLine(now, message.stream, 'COMPLETE')]
      case 'Failed':
        return [
          ...(message.isRepeated === true ? [] : [errorTraceLine(now, message.failure, message.stream)]),
          ...(message.stream === undefined ? [] : [statusLine(now, message.stream, 'INCOMPLETE')]),
        ]
      case 'Waiting': {
        const reason = { type: 'RATE_LIMITED', rate_limited: { quota_reset: Math.trunc(message.until) } }
        return [statusLine(now, message.stream, 'RUNNING', reason)]
      }
      case 'Log':
        return [jsonLine({ type: 'LOG', log: { level: airbyteLogLevels[message.level], message: message.message } })]
      // Sent only to consumers that ask for them.
      case 'SharedRecords':
      case 'TableVersion':
        return []
    }
  }

const recordLines = ({ stream, rows, at }: Extract<Message, { readonly _tag: 'Records' }>): OutputText =>
  wrapRows(rows, `{"type":"RECORD","record":{"stream":${JSON.stringify(stream)},"data":`, ({ changes }) => {
    const meta = changes === undefined ? '' : `,"meta":${JSON.stringify({ changes })}`
    return `,"emitted_at":${Math.trunc(at)}${meta}}}`
  })

/** `recordCount` is a double and must be printed as one. NaN means unknown. */
const streamStateLine = (name: string, state: unknown, count: number): string => {
  const stream = `{"stream_descriptor":${JSON.stringify({ name })},"stream_state":${printJsonText(state)}}`
  const stats = Number.isNaN(count) ? '' : `,"sourceStats":{"recordCount":${count.toFixed(1)}}`
  return `{"type":"STATE","state":{"type":"STREAM","stream":${stream}${stats}}}\n`
}

/** The received STATE line with `destinationStats` added. Their counts are doubles and must be printed as such. */
const addDestinationStats = (received: Uint8Array, { accepted, rejected }: StateCounts = noCounts): string => {
  const line = Buffer.from(received.buffer, received.byteOffset, received.byteLength)
  const stats = `{"recordCount":${accepted.toFixed(1)},"rejectedRecordCount":${rejected.toFixed(1)}}`
  const text = (from: number, to?: number) => line.toString('utf8', from, to)
  const state = readObjectMembers(line, 'state')?.get('state')
  if (state === undefined) return `${text(0)}\n`
  const given = readMembersAt(line, state)?.get('destinationStats')
  if (given !== undefined) return `${text(0, given.from)}${stats}${text(given.to)}\n`
  const before = text(0, state.to - 1).trimEnd()
  return `${before}${before.endsWith('{') ? '' : ','}"destinationStats":${stats}${text(state.to - 1)}\n`
}

const noCounts: StateCounts = { accepted: 0, rejected: 0 }

const traceLine = (now: () => number, type: string, content: object): string =>
  jsonLine({ type: 'TRACE', trace: { type, emitted_at: Math.trunc(now()), ...content } })

const statusLine = (now: () => number, name: string, status: string, reason?: object): string =>
  traceLine(now, 'STREAM_STATUS', {
    stream_status: {
      stream_descriptor: { name },
      status,
      ...(reason === undefined ? {} : { reasons: [reason] }),
    },
  })

/** How many records a stream sends. An additional estimate of the whole sync would invalidate both. */
const estimateTraceLine = (now: () => number, name: string, row_estimate: number): string =>
  traceLine(now, 'ESTIMATE', { estimate: { name, type: 'STREAM', row_estimate } })

/** A failure of the whole run, or of one stream, as a trace. */
export const errorTraceLine = (now: () => number, { _tag, message, detail = '' }: Failure, stream?: string): string => {
  const [firstLine, ...stack] = detail.trim().split('\n')
  return traceLine(now, 'ERROR', {
    error: {
      message,
      // A platform shows this as the reason why a job failed because of its config.
      internal_message: firstLine || message,
      ...(stack.length > 0 ? { stack_trace: detail } : {}),
      failure_type: failureTypes[_tag],
      ...(stream === undefined ? {} : { stream_descriptor: { name: stream } }),
    },
  })
}
