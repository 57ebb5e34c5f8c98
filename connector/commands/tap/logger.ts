import type { CommandIo } from '../../cdk/cli'
import { formatJsonLog, formatPlainLog, type SingerLogEntry } from '../../cdk/singer/log'

export type SingerLogger = (entry: SingerLogEntry) => void

/** Logs on stderr: `LEVEL message`, or JSON lines where Meltano asks for them by setting SINGER_SDK_LOG_CONFIG. */
export const createSingerLogger = (io: CommandIo, app: string): SingerLogger => {
  const format = io.env.SINGER_SDK_LOG_CONFIG === undefined ? formatPlainLog : formatJsonLog(app, io.pid, Date.now)
  return (entry) => io.printWarning(format(entry))
}

/** The same outside, whose warnings are log lines too. */
export const withLoggedWarnings = (io: CommandIo, log: SingerLogger): CommandIo => ({
  ...io,
  printWarning: (message) => log({ level: 'warn', message }),
})
