import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as TE from 'fp-ts/TaskEither'
import { httpApi } from './api/api'
import type { ClientOptions } from './api/client'
import { type Clock, systemClock } from './api/clock'
import type { Failure } from './cdk/failure'
import { type Connected, connect } from './connect'
import type { DestinationConfig } from './destination-config'
import { acceptingApi } from './sinks/accepting-api'
import { type Ledger, lookAtLedger, openLedger } from './sinks/ledger'
import { resending, resendPolicy } from './sinks/resend'
import type { Target } from './sinks/target'

/** A destination at its service. */
export type WiredDestination = Pick<Connected, 'onWait' | 'close'> & { readonly target: Target }

/** The largest answer that is taken, in MB: an answer names each record of a batch, and no more. */
const maxAnswer = 64

/** How often a batch that goes unanswered is sent; and how often its halves, where the service may fail on one of its items. */
const attempts = { patient: 6, suspected: 2 }

/** A config as a destination; fails where an address may not be used, or the ledger cannot be. */
export const wireDestination = (
  config: DestinationConfig,
  warn: (message: string) => void,
  options: ClientOptions = {},
): TE.TaskEither<Failure, WiredDestination> =>
  pipe(
    TE.fromEither(connect({ ...config, max_response_mb: maxAnswer }, options)),
    TE.bindTo('connected'),
    TE.bind('ledger', () => ledgerOf(config)),
    TE.map(({ connected, ledger }) => {
      const stop = new AbortController()
      return {
        target: toTarget(config, connected, (options.clock ?? systemClock)(stop.signal), ledger, warn),
        onWait: connected.onWait,
        close: () => {
          stop.abort()
          return connected.close()
        },
      }
    }),
  )

const ledgerOf = ({ reconcile, base_url, dry_run }: DestinationConfig): TE.TaskEither<Failure, O.Option<Ledger>> =>
  reconcile.ledger_path === undefined
    ? TE.right(O.none)
    : pipe((dry_run ? lookAtLedger : openLedger)(reconcile.ledger_path, base_url), TE.map(O.some))

const toTarget = (
  config: DestinationConfig,
  { send }: Connected,
  clock: Clock,
  ledger: O.Option<Ledger>,
  warn: (message: string) => void,
): Target => ({
  // `resend` is the only one to send again: the client may not for visits, and would multiply the attempts for locations.
  api: config.dry_run ? acceptingApi : httpApi((route) => send({ ...route, idempotent: false })),
  resend: (suspected) =>
    resending(
      resendPolicy(
        {
          attempts: suspected ? attempts.suspected : attempts.patient,
          maxWait: config.timeouts.max_wait_seconds * 1000,
        },
        clock.random,
      ),
      (millis) => TE.fromTask(clock.wait(millis)),
    ),
  mapping: config.mapping,
  now: Date.now,
  maxVisitAge: config.max_visit_age_days * 86_400_000,
  ledger,
  maxDeactivationsPercent: config.max_deactivations_percent,
  dryRun: config.dry_run,
  warn,
})

/** Rejected records are put aside where there is a file for them; else the first one ends the run, unless the config says otherwise. */
export const onReject = ({ on_reject, dead_letter_path }: DestinationConfig): 'continue' | 'fail' =>
  on_reject ?? (dead_letter_path === undefined ? 'fail' : 'continue')
