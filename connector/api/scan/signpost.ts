import type { LogLevel } from '../../cdk/message'
import { toInstant } from '../model/scalar'

export type RunNote = { readonly level: LogLevel; readonly message: string }

export const warningNote = (message: string): RunNote => ({ level: 'warn', message })
export const infoNote = (message: string): RunNote => ({ level: 'info', message })

const cutoffMargin = 5_000
const cutoffMarginWithoutClock = 300_000
const maxClockSkew = 60_000

/** The time a run reads up to, from the first answer's clock (milliseconds); the local clock only where there is none. */
export const chooseCutoff = (
  servedAt: number | undefined,
  now: number,
): readonly [time: number, notes: readonly RunNote[]] => {
  if (servedAt === undefined)
    return [
      now - cutoffMarginWithoutClock,
      [
        warningNote(
          'The service does not tell its time (no Date header): changes of the last 5 minutes are left for the next run.',
        ),
      ],
    ]
  const skew = now - servedAt
  return [
    servedAt - cutoffMargin,
    Math.abs(skew) <= maxClockSkew
      ? []
      : [
          warningNote(
            `The clock here is ${Math.round(Math.abs(skew) / 1000)} s ${skew > 0 ? 'ahead of' : 'behind'} the service's (${toInstant(servedAt)}). The service's is used; set the clock of this machine.`,
          ),
        ],
  ]
}
