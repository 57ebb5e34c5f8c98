import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as TE from 'fp-ts/TaskEither'
import { createApi } from './api/api'
import type { ClientOptions } from './api/client'
import { type Clock, systemClock } from './api/clock'
import type { Failure } from './cdk/failure'
import { createClient, type ServiceClient } from './connect'
import type { DestinationConfig } from './destination-config'
import { dryRunApi } from './sinks/accepting-api'
import { type LocationLedger, openLedger, readLedger } from './sinks/ledger'
import { resendPolicy, resendUnanswered } from './sinks/resend'
import type { SinkTarget } from './sinks/target'

/** A destination at its service. */
export type ConfiguredDestination = Pick<ServiceClient, 'onWait' | 'close'> & { readonly target: SinkTarget }

/** The largest answer that is taken, in MB: an answer names each record of a batch, and no more. */
const maxResponseMb = 64

/** How often a batch that goes unanswered is sent; and how often its halves, where the service may fail on one of its items. */
const sendAttempts = { patient: 6, suspected: 2 }

/** A config as a destination; fails where an address may not be used, or the ledger cannot be. */
export const openDestination = (
  config: DestinationConfig,
  warn: (message: string) => void,
  options: ClientOptions = {},
): TE.TaskEither<Failure, ConfiguredDestination> =>
  pipe(
    TE.fromEither(createClient({ ...config, max_response_mb: maxResponseMb }, options)),
    TE.bindTo('connected'),
    TE.bind('ledger', () => openConfiguredLedger(config)),
    TE.map(({ connected, ledger }) => {
      const stop = new AbortController()
      return {
        target: createTarget(config, connected, (options.clock ?? systemClock)(stop.signal), ledger, warn),
        onWait: connected.onWait,
        close: () => {
          stop.abort()
          return connected.close()
        },
      }
    }),
  )

const openConfiguredLedger = ({
  reconcile,
  base_url,
  dry_run,
}: DestinationConfig): TE.TaskEither<Failure, O.Option<LocationLedger>> =>
  reconcile.ledger_path === undefined
    ? TE.right(O.none)
    : pipe((dry_run ? readLedger : openLedger)(reconcile.ledger_path, base_url), TE.map(O.some))

const createTarget = (
  config: DestinationConfig,
  { send }: ServiceClient,
  clock: Clock,
  ledger: O.Option<LocationLedger>,
  warn: (message: string) => void,
): SinkTarget => ({
  // `resend` is the only one to send again: the client may not for visits, and would multiply the attempts for locations.
  api: config.dry_run ? dryRunApi : createApi((route) => send({ ...route, idempotent: false })),
  resend: (suspected) =>
    resendUnanswered(
      resendPolicy(
        {
          maxAttempts: suspected ? sendAttempts.suspected : sendAttempts.patient,
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
export const rejectAction = ({ on_reject, dead_letter_path }: DestinationConfig): 'continue' | 'fail' =>
  on_reject ?? (dead_letter_path === undefined ? 'fail' : 'continue')
