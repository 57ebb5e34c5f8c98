import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import { type ApiError, type ClientOptions, type Clock, createApi, systemClock, toFailure } from '../api'
import type { Failure } from '../cdk'
import type { DestinationConfig } from '../config'
import {
  dryRunApi,
  type LocationLedger,
  openLedger,
  readLedger,
  resendPolicy,
  resendUnanswered,
  type SinkTarget,
} from '../sinks'
import { createClient, type ServiceClient } from './client'

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

type OperationProbe = { readonly name: keyof SinkTarget['mapping']; readonly ask: TaskEither<ApiError, unknown> }

/** The operations that the config speaks of; both where it speaks of none. */
const listUsedOperations = ({ mapping, reconcile }: DestinationConfig): ReadonlyArray<OperationProbe['name']> => {
  const names = (['visit_records', 'locations'] as const).filter(
    (name) =>
      Object.values(mapping[name]).some((column) => column !== undefined) ||
      (name === 'locations' && reconcile.ledger_path !== undefined),
  )
  return names.length === 0 ? ['visit_records', 'locations'] : names
}

/** Sends an empty array to each operation used, since the service offers no better probe. Any answer but 401 and 403 means that permission was not denied. */
export const checkDestination =
  (config: DestinationConfig, { api }: Pick<SinkTarget, 'api'>): TaskEither<Failure, string> =>
  async () => {
    const probes: Readonly<Record<OperationProbe['name'], TaskEither<ApiError, unknown>>> = {
      visit_records: api.createVisitRecords([]),
      locations: api.syncLocations([]),
    }
    const said: Array<string> = []
    for (const name of listUsedOperations(config)) {
      const answer = await probes[name]()
      if (E.isLeft(answer) && isPermissionDenied(answer.left)) return E.left(toFailure(name, answer.left))
      said.push(`${name}: permission not denied${E.isLeft(answer) ? formatRemark(answer.left) : ''}`)
    }
    return E.right(`${said.join('; ')}.`)
  }

/** A refusal, or no answer at all. */
const isPermissionDenied = (error: ApiError): boolean =>
  error._tag === 'Http' ? [401, 403].includes(error.status) : error._tag !== 'Decode' && error._tag !== 'Application'

const formatRemark = (error: ApiError): string =>
  error._tag === 'Http' ? ` (it answered ${error.status}${error.status === 404 ? ': check base_url' : ''})` : ''
