import type { LogLevel } from '../message'
import type { LogEntry } from '../protocol'

const singerLogLevels: Record<LogLevel, string> = { error: 'ERROR', warn: 'WARNING', info: 'INFO', debug: 'DEBUG' }

/** `LEVEL message`, one line. */
export const formatPlainLog = ({ level, message }: LogEntry): string =>
  `${singerLogLevels[level]} ${message.replaceAll('\n', '\\n')}`

/** The Meltano SDK's structured form, of which Meltano reads level, stream and message. `now`: milliseconds. */
export const formatJsonLog =
  (app: string, pid: number, now: () => number) =>
  ({ level, message, stream }: LogEntry): string =>
    JSON.stringify({
      level: singerLogLevels[level].toLowerCase(),
      pid,
      logger_name: app,
      ts: now() / 1000,
      thread_name: 'main',
      app_name: app,
      stream_name: stream ?? null,
      message,
    })

/** A measurement, as singer-python and the Meltano SDK write it. */
export const metricLogEntry = (
  type: 'counter' | 'timer',
  name: 'record_count' | 'http_request_duration' | 'sync_duration',
  value: number,
  tags: Readonly<Record<string, string | number>>,
): LogEntry => ({
  level: 'info',
  message: `METRIC: ${JSON.stringify({ type, metric: name, value, tags })}`,
  ...(typeof tags.stream === 'string' ? { stream: tags.stream } : {}),
})
