import type { Level } from '../../cdk/message'
import { toInstant } from '../model/scalar'

export type Note = { readonly level: Level; readonly message: string }

export const warn = (message: string): Note => ({ level: 'warn', message })
export const info = (message: string): Note => ({ level: 'info', message })

const margin = 5_000
const marginWithoutClock = 300_000
const worthAWarning = 60_000

/** The time a run reads up to, from the first answer's clock (milliseconds); the local clock only where there is none. */
export const signpost = (
  servedAt: number | undefined,
  now: number,
): readonly [time: number, notes: readonly Note[]] => {
  if (servedAt === undefined)
    return [
      now - marginWithoutClock,
      [
        warn(
          'The service does not tell its time (no Date header): changes of the last 5 minutes are left for the next run.',
        ),
      ],
    ]
  const skew = now - servedAt
  return [
    servedAt - margin,
    Math.abs(skew) <= worthAWarning
      ? []
      : [
          warn(
            `The clock here is ${Math.round(Math.abs(skew) / 1000)} s ${skew > 0 ? 'ahead of' : 'behind'} the service's (${toInstant(servedAt)}). The service's is used; set the clock of this machine.`,
          ),
        ],
  ]
}
