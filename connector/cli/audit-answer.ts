import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as E from 'fp-ts/Either'
import {
  CommandError,
  type CommandIo,
  configFailure,
  defineCommand,
  formatStateFile,
  getOrThrow,
  loadAirbyteState,
} from '../cdk'
import { rewindStream } from '../runtime'
import {
  type AuditAnswer,
  type AuditedTable,
  decodeAnswer,
  deleteStatement,
  type Expected,
  type ReviewDifference,
  summarizeAnswer,
} from '../snapshot'
import type { SourceEnv } from '../streams'
import { writeOutputFile } from './snapshot-file'
import { formatJson } from './table'

const readText = async (io: CommandIo, path: string): Promise<string> => {
  if (path !== '-')
    return readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
      throw new CommandError(configFailure(`${path} cannot be read (${error.code ?? error.message}). Check the path.`))
    })
  const chunks: Uint8Array[] = []
  for await (const chunk of io.stdin) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

const readAnswer = async (io: CommandIo, path: string): Promise<AuditAnswer> => {
  const decoded = decodeAnswer(await readText(io, path))
  if (E.isLeft(decoded))
    throw new CommandError(configFailure(`${path === '-' ? 'The answer on stdin' : path} ${decoded.left.message}`))
  return decoded.right
}

export const answerOption = {
  type: 'string',
  value: 'FILE',
  help: 'Instead of a statement, say what the answer of one means, as CSV or JSON; - is stdin. Takes --json, and needs no other option',
} as const

/** What `feedback audit --answer FILE` runs. */
export const answerCommand = defineCommand({
  name: 'audit --answer',
  summary: 'Says what the answer of a statement of an audit means.',
  options: {
    answer: { ...answerOption, required: true },
    json: { type: 'boolean', help: 'Print the numbers as JSON' },
  },
  run: async (io, { options }) => {
    const summary = summarizeAnswer(await readAnswer(io, options.answer))
    const { of, differences, kinds, buckets } = summary
    const isEqual = differences === 0
    if (options.json) await io.print(formatJson({ equal: isEqual, of, differences, kinds, buckets }))
    else if (isEqual) await io.print('The table equals the service.\n')
    else
      await io.print(
        [
          `The table differs from the service in ${differences.toLocaleString('en')} ${differences === 1 ? of.slice(0, -1) : of}:`,
          ...Object.entries(kinds).map(([kind, count]) => `  ${kind}: ${count.toLocaleString('en')}`),
          of === 'buckets' ? `Name the reviews: --ids ${buckets.join(',')}` : 'Repair them: --repair with this answer',
          '',
        ].join('\n'),
      )
    return isEqual ? 0 : 1
  },
})

/** The reviews that an answer names. */
export const readDifferences = async (io: CommandIo, path: string): Promise<ReadonlyArray<ReviewDifference>> => {
  const answer = await readAnswer(io, path)
  if (answer.of !== 'buckets') return answer.differences
  throw new CommandError(
    configFailure(`${path} names buckets. Give the answer of the statement of --ids, which names reviews.`),
  )
}

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
