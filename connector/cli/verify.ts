import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { CommandError, type CommandIo, configFailure, defineCommand, progressDelay, usageError } from '../cdk'
import { createReviewService } from '../runtime'
import {
  type CheckResult,
  compareReviews,
  countChecks,
  damagedFileFailure,
  planRepair,
  requireService,
  type Snapshot,
  verifySnapshot,
} from '../snapshot'
import { deletedReviewsStream, findStateProblem } from '../streams'
import { loadSourceConfig, openSource } from './configured-source'
import { configOption, readPlaceOptions, requirePlace, variablePrefix } from './options'
import { writeOutputFile } from './output-file'
import { toSnapshotOptions, useSnapshot } from './snapshot-file'
import { formatCheckCounts, formatJson, formatTable } from './table'

/** Only programs need more examples, and they read --json. */
const maxExamples = 5

/**
 * What verify prints for a person: a table, then the checks that found something. With `explain`, every check and its
 * SQL.
 */
const formatVerifyReport = (results: ReadonlyArray<CheckResult>, explain: boolean): string => {
  const table = formatTable(
    ['check', 'result', 'found'],
    results.map(({ name, outcome, failures }) => [
      name,
      outcomeWords[outcome],
      failures === 0 ? '' : failures.toLocaleString('en'),
    ]),
  )
  const details = (
    explain ? results : results.filter(({ failures, outcome }) => failures > 0 || outcome === 'unanswered')
  ).map(({ name, explain: meaning, sql, failures, examples, problem }) =>
    [
      `\n${name}: ${meaning}\n`,
      problem === undefined ? '' : `  This could not be checked. ${problem}\n`,
      ...examples.slice(0, maxExamples).map((example) => `  ${example}\n`),
      failures > maxExamples ? `  and ${(failures - maxExamples).toLocaleString('en')} more\n` : '',
      explain && sql !== undefined ? `${sql.replace(/^\n+/, '').trimEnd()}\n` : '',
    ].join(''),
  )
  const { failed, unanswered, checked } = countChecks(results)
  const verdict = [
    ...(failed === 0 && unanswered === 0 ? ['All checks passed.'] : []),
    ...(failed === 0 ? [] : [`${failed} of ${checked} checks failed.`]),
    `${formatCheckCounts(results)}.`,
  ]
  return `${table}${details.join('')}\n${verdict.join(' ')}\n`
}

const outcomeWords: Readonly<Record<CheckResult['outcome'], string>> = {
  holds: 'ok',
  note: 'note',
  failed: 'FAILED',
  unanswered: 'NOT CHECKED',
  'nothing to check': 'nothing to check',
}

export const verifyCommand = defineCommand({
  name: 'verify',
  summary: 'Checks that a snapshot is complete and consistent, and says what is wrong with it.',
  options: {
    ...readPlaceOptions,
    config: {
      ...configOption,
      required: false,
      help:
        'Also compare the reviews with the service of this configuration file (JSON), ' +
        `or ENV for variables ${variablePrefix}_…`,
    },
    repair: {
      type: 'string',
      value: 'FOLDER',
      help: 'With --config: write files into FOLDER that repair the differences',
    },
    json: { type: 'boolean', help: 'Print the results as JSON' },
    explain: { type: 'boolean', help: 'Print what each check means, and its SQL' },
  },
  examples: [
    'feedback verify --db reviews.duckdb',
    'feedback verify --db reviews.duckdb --explain',
    'feedback verify --db reviews.duckdb --config config.json --repair repair/',
  ],
  notes:
    'With --config, it reads the ids and times of all reviews from the service. ' +
    'Exit status: 0 all checks passed, 1 a check failed, 2 a check could not run ' +
    'or the file is damaged, 75 or 78 the file or the service could not be read.',
  run: async (io, { options }) => {
    const { config, repair, json, explain } = options
    const db = requirePlace('feedback verify', options)
    if (repair !== undefined && config.length === 0)
      throw usageError('feedback verify --repair needs --config too: only the service knows what is right.')
    return withDamageStatus(db, () =>
      useSnapshot(
        db,
        'read',
        async (snapshot) => {
          const results = config.length === 0 ? await checkFile(io, snapshot) : await checkBoth(io, snapshot, config)
          io.printProgress('')
          await io.print(json ? formatJson(results) : formatVerifyReport(results, explain))
          if (repair !== undefined) await writeRepair(io, snapshot, repair, config)
          const { failed, unanswered } = countChecks(results)
          return unanswered > 0 ? 2 : failed > 0 ? 1 : 0
        },
        toSnapshotOptions(io, options),
      ),
    )
  },
})

/** The checks cannot judge a damaged file, so its exit status differs from that of a failed check. */
const withDamageStatus = async (path: string, answer: () => Promise<number>): Promise<number> => {
  try {
    return await answer()
  } catch (error) {
    throw error instanceof CommandError && error.failure.message === damagedFileFailure(path).message
      ? new CommandError(error.failure, 2)
      : error
  }
}

const checkFile = (io: CommandIo, snapshot: Snapshot): Promise<ReadonlyArray<CheckResult>> =>
  verifySnapshot(snapshot, findStateProblem, (step) => io.printProgress(step, progressDelay))

/**
 * Checks the file while the service is read: the first uses DuckDB's threads, the second this process's JavaScript. A
 * failure of one ends the other.
 */
const checkBoth = async (
  io: CommandIo,
  { db }: Snapshot,
  paths: ReadonlyArray<string>,
): Promise<ReadonlyArray<CheckResult>> => {
  const connection = await db.connect()
  const steps = { file: '', service: '' }
  let problem: { readonly error: unknown } | undefined
  const end = (error: unknown): never => {
    problem ??= { error }
    connection.interrupt()
    throw problem.error
  }
  const showStep = (name: keyof typeof steps) => (step: string) => {
    if (problem !== undefined) throw problem.error
    steps[name] = step
    io.printProgress([steps.service, steps.file].filter((text) => text !== '').join('. '), progressDelay)
  }
  const checkOwn = async () => {
    const results = await verifySnapshot({ db: connection }, findStateProblem, showStep('file'))
    steps.file = ''
    return results
  }
  try {
    const own = checkOwn().catch(end)
    const [compared, checked] = await Promise.allSettled([
      compareWithService(io, { db }, paths, showStep('service'), own).catch(end),
      own,
    ])
    if (compared.status === 'rejected') throw compared.reason
    if (checked.status === 'rejected') throw checked.reason
    return [...checked.value, ...compared.value]
  } finally {
    connection.close()
  }
}

/** `first`: must end before the file is read, so that both together need no more memory than one after the other. */
const compareWithService = async (
  io: CommandIo,
  snapshot: Snapshot,
  paths: ReadonlyArray<string>,
  onStep: (step: string) => void,
  first: Promise<unknown>,
): Promise<ReadonlyArray<CheckResult>> => {
  const configured = openSource(io, await loadSourceConfig(io, paths))
  try {
    await requireService(snapshot, configured.service, 'Give the config of the service that the file was read from.')
    return await compareReviews(snapshot, createReviewService(configured.env), { onStep, first })
  } finally {
    await configured.close()
  }
}

/** Writes the files that repair the snapshot, and prints the commands that use them. */
const writeRepair = async (
  io: CommandIo,
  snapshot: Snapshot,
  folder: string,
  config: ReadonlyArray<string>,
): Promise<void> => {
  const { path, lake } = snapshot.db
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
    if (messages !== undefined) await writeOutputFile(files.messages, messages)
    if (state !== undefined) await writeOutputFile(files.state, state)
  } catch (error) {
    if (error instanceof CommandError) throw error
    throw new CommandError(configFailure(`${folder} cannot be written to (${(error as NodeJS.ErrnoException).code}).`))
  }
  io.printWarning('To repair it:')
  // The messages go into a lake too, even though the option is --db.
  if (messages !== undefined) io.printWarning(`  feedback snapshot --db ${path} ${files.messages}`)
  if (state === undefined) return
  const place = `${lake === undefined ? '--db' : '--lake'} ${path}`
  io.printWarning(`  feedback state import ${place} --state ${files.state}`)
  io.printWarning(`  feedback sync ${config.map((each) => `--config ${each}`).join(' ')} ${place}`)
}
