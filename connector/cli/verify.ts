import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { CommandError, type CommandIo, configFailure, defineCommand, usageError, withTroubleStatus } from '../cdk'
import { configOption, getOrThrow, loadSourceConfig } from '../config'
import { createReviewService, createSource } from '../runtime'
import { type CheckResult, compareReviews, planRepair, type Snapshot, verifySnapshot } from '../snapshot'
import { deletedReviewsStream } from '../streams'
import { dbOption, useSnapshot } from './snapshot'
import { formatTable } from './table'

/** More are for programs, which read --json. */
const maxExamples = 5

/** What verify prints for people: a table, and what failed below it; `explain`: every check with its SQL. */
export const formatVerifyReport = (results: ReadonlyArray<CheckResult>, explain: boolean): string => {
  const failed = results.filter(({ ok }) => !ok)
  const table = formatTable(
    ['check', 'result', 'found'],
    results.map((result) => [
      result.name,
      formatResult(result),
      result.failures === 0 ? '' : result.failures.toLocaleString('en'),
    ]),
  )
  const told = (explain ? results : results.filter(({ failures }) => failures > 0)).map(
    ({ name, explain: meaning, sql, failures, examples }) =>
      [
        `\n${name}: ${meaning}\n`,
        ...examples.slice(0, maxExamples).map((example) => `  ${example}\n`),
        failures > maxExamples ? `  and ${(failures - maxExamples).toLocaleString('en')} more\n` : '',
        explain && sql !== undefined ? `${sql.replace(/^\n+/, '').trimEnd()}\n` : '',
      ].join(''),
  )
  const verdict = failed.length === 0 ? 'All checks passed.' : `${failed.length} of ${results.length} checks failed.`
  return `${table}${told.join('')}\n${verdict}\n`
}

const formatResult = ({ ok, failures, sql }: CheckResult): string => {
  if (!ok) return 'FAILED'
  return sql === undefined ? 'nothing to check' : failures > 0 ? 'note' : 'ok'
}

export const verifyCommand = defineCommand({
  name: 'verify',
  summary: 'Checks that a snapshot is whole and says what is wrong with it.',
  options: {
    db: dbOption,
    config: {
      ...configOption,
      required: false,
      help: 'Also hold the reviews against the service of this configuration',
    },
    repair: { type: 'string', value: 'FOLDER', help: 'With --config: write into FOLDER what heals the differences' },
    json: { type: 'boolean', help: 'Print the results as JSON' },
    explain: { type: 'boolean', help: 'Say what each check means, and its SQL' },
  },
  examples: [
    'feedback verify --db reviews.duckdb',
    'feedback verify --db reviews.duckdb --explain',
    'feedback verify --db reviews.duckdb --config config.json --repair repair/',
  ],
  notes:
    'With --config the ids and times of all reviews are read from the service, by a scan that loses none. Exit status: 0 all is well, 1 a check failed, 2 the file or the service could not be read.',
  run: (io, { options }) => {
    const [config, repair] = [options.config?.toString(), options.repair?.toString()]
    if (repair !== undefined && config === undefined)
      throw usageError('feedback verify --repair wants --config too: only the service knows what is right.')
    return withTroubleStatus(() =>
      useSnapshot(String(options.db), 'read', async (snapshot) => {
        const own = await verifySnapshot(snapshot)
        const results = config === undefined ? own : [...own, ...(await compareWithService(io, snapshot, config))]
        await io.print(
          options.json === true
            ? `${JSON.stringify(results, null, 2)}\n`
            : formatVerifyReport(results, options.explain === true),
        )
        if (repair !== undefined && config !== undefined) await writeRepair(io, snapshot, repair, config)
        return results.every(({ ok }) => ok) ? 0 : 1
      }),
    )
  },
})

const compareWithService = async (
  io: CommandIo,
  snapshot: Snapshot,
  path: string,
): Promise<ReadonlyArray<CheckResult>> => {
  const wired = getOrThrow(createSource(await loadSourceConfig(io, path)))
  try {
    return await compareReviews(snapshot, createReviewService(wired.source))
  } finally {
    await wired.close()
  }
}

/** Writes the files that heal, and says how to use them. */
const writeRepair = async (io: CommandIo, snapshot: Snapshot, folder: string, config: string): Promise<void> => {
  const { path } = snapshot.db
  const { name, schema, primaryKey, cursor } = deletedReviewsStream
  const { state, messages } = await planRepair(
    snapshot,
    { name, schema, primaryKey, cursor, syncMode: 'incremental' },
    Date.now(),
  )
  if (state === undefined && messages === undefined) return io.printWarning('There is nothing to repair.')
  const files = { messages: join(folder, 'messages.jsonl'), state: join(folder, 'state.json') }
  try {
    await mkdir(folder, { recursive: true })
    if (messages !== undefined) await writeFile(files.messages, messages)
    if (state !== undefined) await writeFile(files.state, state)
  } catch (error) {
    throw new CommandError(configFailure(`${folder} cannot be written to (${(error as NodeJS.ErrnoException).code}).`))
  }
  io.printWarning('To repair it:')
  if (messages !== undefined) io.printWarning(`  feedback snapshot --db ${path} ${files.messages}`)
  if (state === undefined) return
  io.printWarning(`  feedback state import --db ${path} --state ${files.state}`)
  io.printWarning(`  feedback sync --config ${config} --db ${path}`)
}
