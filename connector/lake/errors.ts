import { configFailure, type Failure, transientFailure } from '../cdk'
import { isOutOfMemory } from '../snapshot/store'
import { describeLake } from './place'

type KnownError = {
  /** What DuckDB says, as regular expressions. */
  readonly says: ReadonlyArray<string>
  readonly toFailure: typeof configFailure
  readonly means: string
}

/** What the errors of a lake's catalogue and storage mean. The first match counts. */
const knownErrors: ReadonlyArray<KnownError> = [
  {
    says: [
      'extension is not compatible',
      'Unsupported DuckLake',
      'version .* is not (?:supported|compatible)',
      'only supports? (?:DuckLake )?version',
      'catalog version mismatch',
      'was created with a newer',
    ],
    toFailure: configFailure,
    means:
      "the lake's catalogue is for another version of DuckLake. Upgrade feedback-connector and DuckDB's extension " +
      'ducklake, or read it with the version that wrote it.',
  },
  {
    says: ['No snapshot found at version'],
    toFailure: configFailure,
    means: "the lake has no such version, or no longer. FROM ducklake_snapshots('lake') in feedback query lists them.",
  },
  {
    says: ['explicitly disabled', 'does not exist and', 'database does not exist'],
    toFailure: configFailure,
    means: 'there is no lake. Check the address given with --lake; feedback sync creates one.',
  },
  {
    says: ['not a valid DuckDB database'],
    toFailure: configFailure,
    means: 'the file is not the catalogue of a lake. It was not changed; give another --lake.',
  },
  {
    says: ['does not match existing data path'],
    toFailure: configFailure,
    means: 'the lake keeps its files in a different place than --data. Leave --data out, or give another --lake.',
  },
  {
    says: ['data_path is not set', 'DATA_PATH parameter'],
    toFailure: configFailure,
    means: 'a new lake in PostgreSQL needs --data, the folder or the address of object storage for its rows.',
  },
  {
    says: ['HTTP (?:code )?403', 'Forbidden', 'AccessDenied', 'InvalidAccessKeyId', 'SignatureDoesNotMatch'],
    toFailure: configFailure,
    means:
      'the storage refuses access to the data path. Check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and the rights ' +
      'on the bucket.',
  },
  {
    says: ['NoSuchBucket', 'HTTP (?:code )?404'],
    toFailure: configFailure,
    means:
      'the storage has no such bucket or file. Check the data path and AWS_ENDPOINT_URL; a file of the lake may have ' +
      'been removed.',
  },
  {
    says: ['HTTP Error', 'error for HTTP', 'connect to URL', 'SlowDown'],
    toFailure: transientFailure,
    means:
      'the storage of the lake cannot be reached. Nothing is lost: what was committed is kept. Run it again later.',
  },
  {
    says: ['invalid connection option'],
    toFailure: configFailure,
    means:
      'PostgreSQL does not know a key of the address. Check how its keys are spelled, such as host, port, dbname, ' +
      'user and password.',
  },
  {
    says: [
      'authentication failed',
      'no password supplied',
      'no pg_hba',
      'role "[^"]*" does not exist',
      'database "[^"]*" does not exist',
      'permission denied for',
      'missing "=" after',
    ],
    toFailure: configFailure,
    means:
      'PostgreSQL refuses the catalogue. Check the address given with --lake, PGUSER, PGPASSWORD and what the user ' +
      'may do.',
  },
  {
    says: ['INTERNAL Error', 'been invalidated'],
    toFailure: transientFailure,
    means: 'DuckDB failed internally. Nothing is lost: run it again.',
  },
  {
    says: [
      'unable to connect to Postgres',
      'connection to server',
      'could not connect to server',
      'terminating connection',
      'connection unexpectedly',
      'closed the connection',
      'no connection to the server',
      'connection has been closed',
      'the database system is',
      'SSL SYSCALL',
      'Connection refused',
      'too many (?:clients|connections)',
      'Current transaction is aborted',
      'Failed to execute query "(?:BEGIN|COMMIT|ROLLBACK)',
    ],
    toFailure: transientFailure,
    means:
      "the catalogue's PostgreSQL cannot be reached. Nothing is lost: what was committed is kept. Run it again once " +
      'PostgreSQL is back.',
  },
]

/** Why a lake cannot be used; undefined for an error that has nothing to do with its catalogue and storage. */
export const lakeErrorFailure = (name: string, error: unknown): Failure | undefined => {
  const detail = error instanceof Error ? error.message : String(error)
  if (isOutOfMemory(error)) return undefined
  const found = knownErrors.find(({ says }) => new RegExp(says.join('|'), 'i').test(detail))
  return found?.toFailure(`${name}: ${found.means}`, describeLake(detail.split('\n')[0] ?? ''))
}
