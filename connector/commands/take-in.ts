import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import { CommandError, type CommandIo } from '../cdk/cli'
import { configFailure } from '../cdk/failure'
import { readJsonFile } from '../cdk/file'
import { takeUntilAbort } from '../cdk/stopping'
import { addFilePath, getOrThrow, runOrThrow } from '../load'
import { decodeExpectedStreams, type ExpectedStreams } from '../snapshot/configured-catalog'
import { decodeInput } from '../snapshot/incoming'
import { decompressBytes, readFileBytes } from '../snapshot/input-bytes'
import { createSnapshotWriter, type LoadSummary } from '../snapshot/save'
import type { Snapshot } from '../snapshot/snapshot'
import { streams } from '../streams'

export const catalogOption = {
  type: 'string',
  value: 'FILE',
  help: "The run's configured catalog; without it our own streams are known, and Singer messages need none",
} as const

/** Writes the messages of each file into the snapshot, a run each; those on stdin where there is no file. */
export const ingestMessages = async (
  io: CommandIo,
  snapshot: Snapshot,
  {
    files,
    expected,
    history,
  }: {
    readonly files: ReadonlyArray<string>
    readonly expected: ExpectedStreams | undefined
    readonly history: boolean
  },
): Promise<ReadonlyArray<LoadSummary>> => {
  const wishes = Object.fromEntries([...(expected ?? [])].map(([stream, { loadOptions }]) => [stream, loadOptions]))
  const outcomes: Array<LoadSummary> = []
  const counts = new Map<string, number>()
  const inputs =
    files.length === 0
      ? [{ name: 'stdin', bytes: io.stdin }]
      : files.map((name) => ({ name, bytes: readFileBytes(name) }))
  for (const { name, bytes } of inputs) {
    let empty = true
    const saver = await createSnapshotWriter(snapshot, { now: Date.now, loadOptions: wishes, history })
    const lines = decompressBytes(takeUntilAbort(io.stop, bytes))
    for await (const message of decodeInput(lines, { now: Date.now, expected, own: ownStreams })) {
      if (message._tag !== 'Log') empty = false
      if (message._tag === 'Log') io.printWarning(message.message)
      if (message._tag === 'Records') {
        const count = (counts.get(message.stream) ?? 0) + message.rows.length
        counts.set(message.stream, count)
        io.printProgress(`${message.stream}: ${count.toLocaleString('en')} records`)
      }
      await saver.write(message)
    }
    outcomes.push(...(await saver.finish()))
    if (empty && !io.stop.aborted)
      throw new CommandError(
        configFailure(`${name} holds no messages to take in. Look at what should have written them.`),
      )
  }
  return outcomes
}

const ownStreams: ExpectedStreams = new Map(
  streams.map(({ name, schema, primaryKey, cursor }) => [
    name,
    { info: { name, schema, primaryKey, cursor, syncMode: 'incremental' }, loadOptions: {} },
  ]),
)

/** The streams of a configured catalog, if one is given. */
export const loadExpectedStreams = async (path: string | undefined): Promise<ExpectedStreams | undefined> =>
  path === undefined
    ? undefined
    : getOrThrow(
        pipe(decodeExpectedStreams(await runOrThrow(readJsonFile('catalog', path))), E.mapLeft(addFilePath(path))),
      )
