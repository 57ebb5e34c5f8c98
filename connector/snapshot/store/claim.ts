import { CommandError, configFailure, isSameService, type ServiceIdentity, serviceOfState } from '../../cdk'
import { type Database, quoteIdentifier, quoteLiteral, type Snapshot } from './database'
import { adviseOnPlace } from './failures'
import {
  dropOwnViews,
  readMeta,
  readSnapshotState,
  regionsTableName,
  saveMeta,
  scalesTableName,
  viewsHashName,
} from './metadata'
import { historyTableName } from './tables'

/**
 * What to do with a file that holds the data of another service: refuse it, empty it, or treat it as the same service
 * at a new address.
 */
export type OtherService = 'refuse' | 'empty' | 'moved'

/** The fingerprint of the service whose data the file holds; undefined if unknown. */
const readService = async (db: Database): Promise<string | undefined> => {
  const saved = await readMeta(db, 'service')
  if (saved !== undefined) return String(saved)
  const states = Object.values(await readSnapshotState({ db }))
  return states.map(serviceOfState).find((fingerprint) => fingerprint !== undefined)
}

const otherServiceError = (db: Database, data: string, advice: string): CommandError =>
  new CommandError(configFailure(`${db.path} holds the data of ${data}. ${adviseOnPlace(db, advice)}`))

/** Rejects with `CommandError` if the file holds the data of another service. `advice`: what to do then. */
export const requireService = async ({ db }: Snapshot, service: ServiceIdentity, advice: string): Promise<void> => {
  const saved = await readService(db)
  if (saved === undefined || isSameService(saved, service.fingerprint)) return
  const address = await readMeta(db, 'address')
  const owner =
    address === service.address ? `${address} as another application reads it` : (address ?? 'another service')
  throw otherServiceError(db, `${owner}, and the config reads ${service.address}`, advice)
}

const otherServiceAdvice =
  'Nothing was changed. Give another file with --db. To empty this one and start over, add --start-anew; ' +
  'if only the address or the application id of the same service has changed, add --service-moved.'

/**
 * Before anything is read, checks that the file holds no data or that of this service, and records the service. Writes
 * only what is new.
 */
export const claimSnapshot = async ({ db }: Snapshot, service: ServiceIdentity, other: OtherService): Promise<void> => {
  const [owner, address] = [await readMeta(db, 'service'), await readMeta(db, 'address')]
  if (owner === service.fingerprint && address === service.address) return
  await db.transaction(async () => {
    if (other === 'refuse') await requireService({ db }, service, otherServiceAdvice)
    const saved = await readService(db)
    if (saved !== undefined && !isSameService(saved, service.fingerprint)) {
      if (other === 'empty') await (db.lake?.empty() ?? emptySnapshot(db))
      else if (db.lake !== undefined) await db.lake.moveStates(service.fingerprint)
      else
        await db.run('UPDATE _state SET state = json_merge_patch(state, json_object($key, $fingerprint))', {
          key: 'service',
          fingerprint: service.fingerprint,
        })
    }
    await saveService(db, service)
  })
}

const saveService = async (db: Database, { address, fingerprint }: ServiceIdentity): Promise<void> => {
  await saveMeta(db, 'service', fingerprint)
  await saveMeta(db, 'address', address)
}

/**
 * Refuses a state of another service. Commands that write messages or import states know the source only from its
 * states.
 */
export const checkStateService = async (db: Database, stream: string, fingerprint: string): Promise<void> => {
  const saved = await readService(db)
  if (saved === undefined || isSameService(saved, fingerprint)) return
  throw otherServiceError(db, `another service than the state of ${stream}`, 'Give another file with --db.')
}

/** Removes every stream with its rows, versions, states and views. */
const emptySnapshot = async (db: Database): Promise<void> => {
  await dropOwnViews(db)
  for (const { stream } of await db.query('SELECT stream FROM _streams'))
    for (const name of [String(stream), historyTableName(String(stream))])
      await db.run(`DROP TABLE IF EXISTS ${quoteIdentifier(name)}`)
  await db.run(
    `DELETE FROM _deletions; DELETE FROM _streams; DELETE FROM _state; DELETE FROM _loads;
     DELETE FROM _meta WHERE name = ${quoteLiteral(viewsHashName)}; DROP TABLE IF EXISTS ${regionsTableName};
     DROP TABLE IF EXISTS ${scalesTableName}`,
  )
}
