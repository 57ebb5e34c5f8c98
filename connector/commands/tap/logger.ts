import type { Io } from '../../cdk/cli'
import { type Entry, jsonLog, plainLog } from '../../cdk/singer/log'

export type Logger = (entry: Entry) => void

/** Logs on stderr: `LEVEL message`, or JSON lines where Meltano asks for them by setting SINGER_SDK_LOG_CONFIG. */
export const logger = (io: Io, app: string): Logger => {
  const format = io.env.SINGER_SDK_LOG_CONFIG === undefined ? plainLog : jsonLog(app, io.pid, Date.now)
  return (entry) => io.warn(format(entry))
}

/** The same outside, whose warnings are log lines too. */
export const logging = (io: Io, log: Logger): Io => ({ ...io, warn: (message) => log({ level: 'warn', message }) })
