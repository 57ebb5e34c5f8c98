import * as E from 'fp-ts/Either'
import type { TaskEither } from 'fp-ts/TaskEither'
import { type ApiError, toFailure } from './api/error'
import type { Failure } from './cdk/failure'
import type { DestinationConfig } from './destination-config'
import type { SinkTarget } from './sinks/target'

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
