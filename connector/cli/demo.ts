import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { CommandError, type CommandIo, defineCommand, getOrThrow, runOrThrow, systemFailure, usageError } from '../cdk'
import { sourceFormat } from '../config'
import { type ConfiguredSource, checkSource, createSource, syncSnapshot } from '../runtime'
import { type Sandbox, startSandbox } from '../sandbox'
import { readReport, renderReport, verifySnapshot } from '../snapshot'
import { findStateProblem, streams } from '../streams'
import { useSnapshot } from './snapshot-file'
import { formatCheckCounts, formatSyncOutcome } from './table'

/** The only file that the demo leaves in the current folder; replaced by each run. */
const snapshotPath = 'feedback-demo.duckdb'

/** Rows in a page of public reviews and comments; with smaller pages, the demo would spend most of its time on requests. */
const feedbackPageSize = 500

const exampleQueries = [
  `SELECT source->>'name' AS source, count(*) AS reviews, round(avg(rating), 2) AS rating FROM reviews GROUP BY 1 ORDER BY 2 DESC`,
  `SELECT location->>'name' AS location, round(avg(reviewScore), 2) AS score FROM reviews GROUP BY 1 ORDER BY 2 DESC LIMIT 5`,
  `SELECT date_trunc('month', mentionTime) AS month, count(*) AS reviews FROM reviews GROUP BY 1 ORDER BY 1 DESC LIMIT 6`,
]

export const demoCommand = defineCommand({
  name: 'demo',
  summary: 'Shows the connector at work with its own sandbox: sync, change, sync again, verify.',
  options: {
    reviews: { type: 'string', value: 'N', help: 'How many reviews the service holds; default 10000' },
  },
  examples: ['feedback demo', 'feedback demo --reviews 2000'],
  notes: `Writes only ${snapshotPath} into this folder, over an older one. The report goes into a new folder among the system's temporary files; the last line names it. Exit status: 0, or 1 if a check failed.`,
  run: async (io, { options }) => {
    const startedAt = Date.now()
    const reviews = Number(options.reviews ?? 10_000)
    if (!Number.isInteger(reviews) || reviews < 1)
      throw usageError(`--reviews must be a whole number of at least 1, not ${options.reviews}.`)
    io.printProgress('Starting a service on this machine…')
    const sandbox = await startSandbox({ reviews, limits: { maxPerPage: feedbackPageSize } })
    try {
      const ok = await runSteps(io, sandbox)
      await io.print(
        `\nDone in ${((Date.now() - startedAt) / 1000).toFixed(0)} s. ${ok ? 'Try next:' : 'Something is wrong, see above.'}\n`,
      )
      if (ok)
        for (const sql of exampleQueries)
          await io.print(`  node build/bin/feedback.js query --db ${snapshotPath} "${sql}"\n`)
      await io.print(`\nIts report, for a browser: ${await writeReport()}\n`)
      return ok ? 0 : 1
    } finally {
      await sandbox.close()
    }
  },
})

/** Writes the report into a temporary folder; returns its path. */
const writeReport = async (): Promise<string> => {
  const path = join(await mkdtemp(join(tmpdir(), 'feedback-demo-')), 'report.html')
  await writeFile(
    path,
    renderReport(await useSnapshot(snapshotPath, 'read', (snapshot) => readReport(snapshot, Date.now()))),
  )
  return path
}

/** Both syncs with a change of the service between them; returns whether all checks hold. */
const runSteps = async (io: CommandIo, sandbox: Sandbox): Promise<boolean> => {
  const source = getOrThrow(createSource(toDemoConfig(sandbox)))
  try {
    await io.print(
      `A service with ${(await sandbox.truth()).reviews.length.toLocaleString('en')} reviews listens at ${sandbox.url}.\n`,
    )
    for (const warning of await runOrThrow(checkSource(source))) io.printWarning(warning)
    await io.print('check     address, token and permissions are good\n')
    await io.print(`discover  ${streams.map(({ name }) => name).join(', ')}\n`)
    for (const name of [snapshotPath, `${snapshotPath}.wal`]) await rm(name, { force: true })
    const firstOk = await syncAndVerify(io, source, 'The first sync reads everything into', sandbox)
    await sandbox.churn({ change: 300, delete: 100, add: 200 })
    await io.print('\nThe service changes: 300 reviews are modified, 100 deleted, 200 arrive.\n')
    await waitForQuiet(io)
    return (await syncAndVerify(io, source, 'The second sync reads the changes into', sandbox)) && firstOk
  } finally {
    await source.close()
  }
}

/** A sync leaves the changes of the last 5 seconds to the next one, so the demo waits until its changes are older. */
const waitForQuiet = async (io: CommandIo): Promise<void> => {
  for (let seconds = 6; seconds > 0 && !io.stop.aborted; seconds -= 1) {
    io.printProgress(`A sync leaves the last 5 seconds for the next one; waiting ${seconds} s…`)
    await setTimeout(1000)
  }
}

/** Runs one sync and verifies its file; returns whether both succeeded. */
const syncAndVerify = async (
  io: CommandIo,
  source: ConfiguredSource,
  title: string,
  sandbox: Sandbox,
): Promise<boolean> => {
  await io.print(`\n${title} ${snapshotPath}:\n\n`)
  const { outcome, streams: outcomes } = await syncSnapshot(io, source, {
    path: snapshotPath,
    streams,
    syncMode: 'incremental',
  })
  await io.print(formatSyncOutcome(outcomes))
  if (io.stop.aborted) throw new CommandError(systemFailure('The demo was stopped.'))
  return useSnapshot(snapshotPath, 'read', async (snapshot) => {
    const results = await verifySnapshot(snapshot, findStateProblem)
    const failed = results.filter(({ ok }) => !ok)
    for (const { name, explain, examples } of failed)
      io.printWarning(`verify: ${name} fails. ${explain} ${examples.join('; ')}`)
    const loadedReviews = Number(await snapshot.db.scalar('SELECT count(*) FROM reviews'))
    const serviceReviews = (await sandbox.truth()).reviews.length
    await io.print(
      `\nverify    ${formatCheckCounts(results)}; ${loadedReviews.toLocaleString('en')} reviews in the file, ${serviceReviews.toLocaleString('en')} in the service\n`,
    )
    return outcome === 'complete' && failed.length === 0
  })
}

/** The connector's configuration for a sandbox. */
const toDemoConfig = ({ url, applicationId, applicationSecret, tokenUrl }: Sandbox) =>
  getOrThrow(
    sourceFormat.decode({
      base_url: url,
      credentials: {
        auth_type: 'application',
        application_id: applicationId,
        application_secret: applicationSecret,
        token_url: tokenUrl,
      },
      start_date: '2000-01-01T00:00:00Z',
      entities: { from_reviews: { locations: true } },
      feedback_filters: { per_page: feedbackPageSize },
    }),
  ).config
