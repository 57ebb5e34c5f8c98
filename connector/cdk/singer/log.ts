import type { Level } from '../message'

/** What a tap or target logs, to stderr. */
export type Entry = {
  readonly level: Level
  readonly message: string
  readonly stream?: string
}

const levels: Record<Level, string> = { error: 'ERROR', warn: 'WARNING', info: 'INFO', debug: 'DEBUG' }

/** `LEVEL message`, one line. */
export const plainLog = ({ level, message }: Entry): string => `${levels[level]} ${message.replaceAll('\n', '\\n')}`

/** The Meltano SDK's structured form, of which Meltano reads level, stream and message. `now`: milliseconds. */
export const jsonLog =
  (app: string, pid: number, now: () => number) =>
  ({ level, message, stream }: Entry): string =>
    JSON.stringify({
      level: levels[level].toLowerCase(),
      pid,
      logger_name: app,
      ts: now() / 1000,
      thread_name: 'main',
      app_name: app,
      stream_name: stream ?? null,
      message,
    })

/** A measurement, as singer-python and the Meltano SDK write it. */
export const metric = (
  type: 'counter' | 'timer',
  name: 'record_count' | 'http_request_duration' | 'sync_duration',
  value: number,
  tags: Readonly<Record<string, string | number>>,
): Entry => ({
  level: 'info',
  message: `METRIC: ${JSON.stringify({ type, metric: name, value, tags })}`,
  ...(typeof tags.stream === 'string' ? { stream: tags.stream } : {}),
})
