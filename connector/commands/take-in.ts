import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import { type Io, Stopped } from '../cdk/cli'
import { configFailure } from '../cdk/failure'
import { readJson } from '../cdk/file'
import { untilStop } from '../cdk/stopping'
import { inFile, orStop, runOrStop } from '../load'
import { type ExpectedStreams, expectedStreams } from '../snapshot/configured-catalog'
import { incoming } from '../snapshot/incoming'
import { fileBytes, unpacked } from '../snapshot/input-bytes'
import { type Saved, saveTo } from '../snapshot/save'
import type { Snapshot } from '../snapshot/snapshot'
import { streams } from '../streams'

export const catalogOption = {
  type: 'string',
  value: 'FILE',
  help: "The run's configured catalog; without it our own streams are known, and Singer messages need none",
} as const

/** Writes the messages of each file into the snapshot, a run each; those on stdin where there is no file. */
export const takeIn = async (
  io: Io,
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
): Promise<ReadonlyArray<Saved>> => {
  const wishes = Object.fromEntries([...(expected ?? [])].map(([stream, { wish }]) => [stream, wish]))
  const outcomes: Array<Saved> = []
  const counts = new Map<string, number>()
  const inputs =
    files.length === 0 ? [{ name: 'stdin', bytes: io.stdin }] : files.map((name) => ({ name, bytes: fileBytes(name) }))
  for (const { name, bytes } of inputs) {
    let empty = true
    const saver = await saveTo(snapshot, { now: Date.now, wishes, history })
    const lines = unpacked(untilStop(io.stop, bytes))
    for await (const message of incoming(lines, { now: Date.now, expected, own: ownStreams })) {
      if (message._tag !== 'Log') empty = false
      if (message._tag === 'Log') io.warn(message.message)
      if (message._tag === 'Records') {
        const count = (counts.get(message.stream) ?? 0) + message.rows.length
        counts.set(message.stream, count)
        io.progress(`${message.stream}: ${count.toLocaleString('en')} records`)
      }
      await saver.write(message)
    }
    outcomes.push(...(await saver.finish()))
    if (empty && !io.stop.aborted)
      throw new Stopped(configFailure(`${name} holds no messages to take in. Look at what should have written them.`))
  }
  return outcomes
}

const ownStreams: ExpectedStreams = new Map(
  streams.map(({ name, schema, primaryKey, cursor }) => [
    name,
    { info: { name, schema, primaryKey, cursor, syncMode: 'incremental' }, wish: {} },
  ]),
)

/** The streams of a configured catalog, if one is given. */
export const loadExpected = async (path: string | undefined): Promise<ExpectedStreams | undefined> =>
  path === undefined
    ? undefined
    : orStop(pipe(expectedStreams(await runOrStop(readJson('catalog', path))), E.mapLeft(inFile(path))))
