import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import type { TaskEither } from 'fp-ts/TaskEither'
import * as TE from 'fp-ts/TaskEither'
import { type ApiError, type Clock, createApi, readLookupList, systemClock, toFailure } from '../api'
import { configFailure, type Failure } from '../cdk'
import type { DestinationConfig } from '../config'
import {
  dryRunApi,
  type LocationLedger,
  openLedger,
  readLedger,
  resendPolicy,
  resendUnanswered,
  type SinkTarget,
  sendVisits,
} from '../sinks'
import {
  createClient,
  findAccessFailure,
  type ServiceClient,
  type ServiceClientOptions,
  toLocationLookup,
} from './client'

/** A config ready to write: the client of its service and what the sinks need. */
export type ConfiguredDestination = Pick<ServiceClient, 'onWait' | 'close'> & { readonly target: SinkTarget }

/** The largest accepted answer, in MB. An answer holds at most one outcome per record of a batch. */
const maxResponseMb = 64

/** How often an unanswered batch is sent; `suspect`: parts of a batch on which the service failed. */
const sendAttempts = { normal: 6, suspect: 2 }

/**
 * Fails if the address is not allowed or the ledger cannot be read or written. `warn` and `inform` receive messages for
 * the user.
 */
export const openDestination = (
  config: DestinationConfig,
  warn: (message: string) => void,
  options: ServiceClientOptions,
  inform: (message: string) => void = () => undefined,
): TE.TaskEither<Failure, ConfiguredDestination> =>
  pipe(
    TE.fromEither(checkReconcile(config)),
    TE.flatMapEither(() => createClient({ ...config, max_response_mb: maxResponseMb }, { onNotice: warn, ...options })),
    TE.bindTo('client'),
    TE.bind('ledger', () => openConfiguredLedger(config)),
    TE.map(({ client, ledger }) => {
      const stop = new AbortController()
      return {
        target: createTarget(config, client, (options.clock ?? systemClock)(stop.signal), ledger, { warn, inform }),
        onWait: client.onWait,
        close: () => {
          stop.abort()
          return client.close()
        },
      }
    }),
  )

/** Fails if deactivations need a list that is not configured. */
const checkReconcile = ({ reconcile, lookups }: DestinationConfig): E.Either<Failure, void> =>
  reconcile.deactivate_unlisted && lookups.locations === undefined
    ? E.left(
        configFailure(
          'The config is wrong: reconcile.deactivate_unlisted needs ' +
            'lookups.locations, the list of existing locations.',
        ),
      )
    : E.right(undefined)

/** Reads the configured list of locations. A list that may be incomplete is rejected, since no plan can rely on it. */
const createServiceListReader = (
  { lookups }: DestinationConfig,
  { send }: ServiceClient,
  warn: (message: string) => void,
): SinkTarget['serviceList'] => {
  if (lookups.locations === undefined) return O.none
  const { route, list } = toLocationLookup(lookups.locations)
  const { lookupLocations } = createApi(send, { locations: route })
  return O.some((isSample) =>
    pipe(
      readLookupList({
        ...list,
        setting: 'lookups.locations',
        fetch: lookupLocations,
        identify: ({ id }) => (id === undefined || id === null ? undefined : String(id)),
        isSample,
      }),
      TE.mapLeft((refused) =>
        refused._tag === 'Answer' ? refused.failure : toFailure('look up locations', refused.error),
      ),
      TE.filterOrElse(
        ({ doubt }) => doubt === undefined,
        ({ doubt = '' }) => configFailure(doubt),
      ),
      TE.tapIO(
        ({ notes }) =>
          () =>
            notes.forEach(warn),
      ),
    ),
  )
}

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
  client: ServiceClient,
  clock: Clock,
  ledger: O.Option<LocationLedger>,
  log: Pick<SinkTarget, 'warn' | 'inform'>,
): SinkTarget => ({
  // Only `resend` repeats requests. The client does not repeat visits, and would multiply the attempts for locations.
  api: config.dry_run ? dryRunApi : createApi((route) => client.send({ ...route, idempotent: false })),
  resend: (isSuspect) =>
    resendUnanswered(
      resendPolicy(
        {
          maxAttempts: isSuspect ? sendAttempts.suspect : sendAttempts.normal,
          maxWait: config.timeouts.max_wait_seconds * 1000,
        },
        clock.random,
      ),
      (millis) => TE.fromTask(clock.wait(millis)),
    ),
  mapping: config.mapping,
  mapByName: config.map_by_name,
  now: Date.now,
  maxVisitAge: config.max_visit_age_days * 86_400_000,
  ledger,
  serviceList: createServiceListReader(config, client, log.warn) ?? O.none,
  deactivateUnlisted: config.reconcile.deactivate_unlisted,
  wait: clock.wait,
  maxDeactivationsPercent: config.max_deactivations_percent,
  dryRun: config.dry_run,
  rejectedCodes: new Set(),
  ...log,
})

type ObjectName = keyof SinkTarget['mapping']

/** The objects that the config configures, or both if it configures none. */
const listUsedObjects = ({ lookups, mapping, reconcile, streams }: DestinationConfig): ReadonlyArray<ObjectName> => {
  const names = (['visit_records', 'locations'] as const).filter(
    (name) =>
      Object.values(mapping[name]).some((column) => column !== undefined) ||
      Object.values(streams).includes(name) ||
      (name === 'locations' && (reconcile.ledger_path !== undefined || lookups.locations !== undefined)),
  )
  return names.length === 0 ? ['visit_records', 'locations'] : names
}

/**
 * Sends an empty array for each object used, since the service has no better way to check. If it only refuses the empty
 * request, permission is not denied.
 */
export const checkDestination =
  (
    config: DestinationConfig,
    { api, serviceList = O.none }: Pick<SinkTarget, 'api' | 'serviceList'>,
  ): TaskEither<Failure, string> =>
  async () => {
    const requests: Readonly<Record<ObjectName, TaskEither<ApiError, unknown>>> = {
      visit_records: sendVisits(api, []),
      locations: api.syncLocations([]),
    }
    const results: Array<string> = []
    for (const name of listUsedObjects(config)) {
      const answer = await requests[name]()
      const failure = E.isLeft(answer) ? findAccessFailure(name, answer.left) : undefined
      if (failure !== undefined) return E.left(failure)
      results.push(`${name}: permission not denied${E.isLeft(answer) ? formatStatus(answer.left) : ''}`)
    }
    if (O.isSome(serviceList)) {
      const list = await serviceList.value(true)()
      results.push(
        E.isRight(list)
          ? `list of locations: answered, ${list.right.records.length} on its first page`
          : `list of locations: not usable, so nothing is verified (${list.left.message})`,
      )
    }
    return E.right(`${results.join('; ')}.`)
  }

const formatStatus = (error: ApiError): string =>
  error._tag === 'Http' ? ` (it answered ${error.status}${error.status === 404 ? ': check base_url' : ''})` : ''
