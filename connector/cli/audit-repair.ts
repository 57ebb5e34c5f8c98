import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { CommandError, type CommandIo, configFailure, formatStateFile, getOrThrow, loadAirbyteState } from '../cdk'
import { rewindStream } from '../runtime'
import { type AuditedTable, deleteStatement, type Expected, type ReviewDifference } from '../snapshot'
import type { SourceEnv } from '../streams'
import { writeOutputFile } from './snapshot-file'

type RepairOptions = {
  readonly stream: string
  /** The file of the state that the last load ended with. */
  readonly state: string | undefined
  readonly folder: string | undefined
}

/** Writes the files that repair a table, and prints how they are used. */
export const writeRepair = async (
  io: CommandIo,
  source: SourceEnv,
  table: AuditedTable,
  { scope, findVersions }: Expected,
  differences: ReadonlyArray<ReviewDifference>,
  { stream, state, folder = 'audit-repair' }: RepairOptions,
): Promise<void> => {
  if (differences.length === 0) return io.printWarning('There is nothing to repair.')
  const { versions, newer } = await findVersions(differences.map(({ id }) => id))
  const given = state === undefined ? {} : await loadAirbyteState(state)
  const states = getOrThrow(rewindStream(source, stream, given, { versions, newer, cutoff: scope.cutoff }))
  const list = Object.entries(states).map(([name, value]) => ({ stream: name, state: JSON.stringify(value) }))
  const [deletions, airbyteState, singerState] = ['delete.sql', 'state.json', 'singer-state.json'].map((name) =>
    join(folder, name),
  ) as [string, string, string]
  await mkdir(folder, { recursive: true }).catch((error: NodeJS.ErrnoException) => {
    throw new CommandError(
      configFailure(`${folder} cannot be made (${error.code ?? error.message}). Give another --folder.`),
    )
  })
  await writeOutputFile(deletions, deleteStatement(table, differences))
  await writeOutputFile(airbyteState, formatStateFile(list))
  await writeOutputFile(singerState, `${JSON.stringify({ singer_state: { bookmarks: states } })}\n`)
  io.printWarning(
    `To repair the table:\n  1. Run ${deletions} in the warehouse.\n  2. Within 24 hours, start the next run from ${airbyteState} (Airbyte) or ${singerState} (Singer, Meltano).`,
  )
}
