import { runOrThrow } from '../load'
import { closeSnapshot, openSnapshot, type Snapshot, type SnapshotAccess } from '../snapshot/snapshot'

export const dbOption = { type: 'string', value: 'FILE', help: 'The DuckDB file', required: true } as const

export const historyOption = {
  type: 'boolean',
  help: 'From now on, keep every version of a row, with valid_from and valid_to: the views NAME_versions',
} as const

/** Opens the file for as long as `body` runs. */
export const useSnapshot = async <A>(
  path: string,
  access: SnapshotAccess,
  body: (snapshot: Snapshot) => Promise<A>,
): Promise<A> => {
  const snapshot = await runOrThrow(openSnapshot(path, access))
  try {
    return await body(snapshot)
  } finally {
    await closeSnapshot(snapshot)
  }
}
