import { rm, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import * as E from 'fp-ts/Either'
import { systemClock } from '../api'
import {
  CommandError,
  type CommandIo,
  defineCommand,
  defined,
  getOrThrow,
  runOrThrow,
  systemFailure,
  usageError,
} from '../cdk'
import { sourceFormat } from '../config'
import { readReport, renderReport } from '../report'
import { type ConfiguredSource, checkSource, createSource, syncSnapshot } from '../runtime'
import { type Sandbox, type ServiceKind, startSandbox } from '../sandbox'
import { verifySnapshot } from '../snapshot'
import { findStateProblem, streams } from '../streams'
import { verbUsageError } from './options'
import { readSandboxFlags } from './sandbox-flags'
import { useSnapshot } from './snapshot-file'
import { formatCheckCounts, formatSyncOutcome } from './table'

/** The two files that the demo leaves in the current folder. Each run replaces them. */
const snapshotPath = 'feedback-demo.duckdb'
const reportPath = 'feedback-demo.html'

/**
 * Rows per page of public reviews and comments. With smaller pages, the demo would spend most of its time on requests.
 */
const feedbackPageSize = 500

/** These query the views, in which a rating of 0 is no rating and days follow the reporting time zone. */
const exampleQueries = [
  `SELECT source_name, count(*) AS reviews, count(rating) AS rated, round(avg(rating), 2) AS mean_rating
    FROM reviews_current
    GROUP BY 1
    ORDER BY 2 DESC`,
  `SELECT location_name, rated, rating_estimate, rating_low, rating_high
    FROM location_scorecard
    ORDER BY rating_low DESC
    LIMIT 5`,
  `SELECT strftime(day, '%Y-%m') AS month, sum(reviews)::BIGINT AS reviews
    FROM review_daily
    GROUP BY 1
    ORDER BY 1 DESC
    LIMIT 6`,
].map((sql) => sql.replaceAll(/\s+/g, ' '))

export const demoCommand = defineCommand({
  name: 'demo',
  summary: 'Shows the connector at work with its own sandbox: sync, change, sync again, verify.',
  options: {
    full: {
      type: 'boolean',
      help: 'Also read the streams by entity (comments, transparency reviews, ratings), with 10,000 reviews',
    },
    reviews: { type: 'string', value: 'N', help: 'How many reviews the service holds; default 2,000' },
    like: {
      type: 'string',
      value: 'KIND',
      help: 'specification (the default) or published, as for feedback sandbox',
    },
  },
  examples: ['feedback demo', 'feedback demo --full', 'feedback demo --like published'],
  notes:
    `Writes ${snapshotPath} and ${reportPath} into this folder, ` +
    'over older ones. Exit status: 0, or 1 if a check failed.',
  run: async (io, { options }) => {
    const startedAt = Date.now()
    const reviews = Number(options.reviews ?? (options.full ? 10_000 : 2_000))
    if (!Number.isInteger(reviews) || reviews < 1)
      throw usageError(`--reviews must be a whole number of at least 1, not ${options.reviews}.`)
    const flags = readSandboxFlags(defined({ like: options.like }))
    if (E.isLeft(flags)) throw verbUsageError('feedback demo', `: ${flags.left}.`)
    const { like = 'specification' } = flags.right
    io.printProgress('Starting a service on this machine…')
    const behind = startedAt - endOfLastMonth(startedAt)
    const now = (): number => Date.now() - behind
    const sandbox = await startSandbox({ reviews, like, limits: { maxPerPage: feedbackPageSize }, now })
    try {
      const ok = await runSteps(io, sandbox, { like, isFull: options.full, now })
      await io.print(
        `\nDone in ${((Date.now() - startedAt) / 1_000).toFixed(0)} ` +
          `s. ${ok ? 'Try next:' : 'Something is wrong, see above.'}\n`,
      )
      if (ok)
        for (const sql of exampleQueries)
          await io.print(`  node ${programPath()} query --db ${snapshotPath} "${sql}"\n`)
      await writeReport()
      await io.print(`\nIts report, for a browser: ${reportPath}\n`)
      return ok ? 0 : 1
    } finally {
      await sandbox.close()
    }
  },
})

/**
 * Half an hour before the current month began, in UTC. What changes at a service with this clock belongs to the
 * reported month.
 */
const endOfLastMonth = (now: number): number => {
  const date = new Date(now)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth()) - 30 * 60_000
}

/** Writes the report beside the snapshot. Like the snapshot, only its owner may read it. */
const writeReport = async (): Promise<void> => {
  const page = renderReport(
    await useSnapshot(snapshotPath, 'read', (snapshot) => readReport(snapshot, { now: Date.now(), findStateProblem })),
  )
  await rm(reportPath, { force: true })
  await writeFile(reportPath, page, { mode: 0o600 })
}

/** The path of the command, as it can be typed in the current folder. */
const programPath = (): string => relative('.', join(__dirname, '..', 'bin', 'feedback.js'))

/** Changes the service's data, and prints how many rows the next sync must read. The numbers add up. */
const changeService = async (io: CommandIo, sandbox: Sandbox): Promise<void> => {
  const before = new Map((await sandbox.truth()).reviews.map(({ id, modifiedTime }) => [id, modifiedTime]))
  await sandbox.churn({ change: 300, delete: 100, add: 200 })
  const after = new Map((await sandbox.truth()).reviews.map(({ id, modifiedTime }) => [id, modifiedTime]))
  const count = (number: number) => number.toLocaleString('en')
  const ids = [...before.keys()]
  const deleted = ids.filter((id) => !after.has(id)).length
  const modified = ids.filter((id) => after.has(id) && after.get(id) !== before.get(id)).length
  const added = [...after.keys()].filter((id) => !before.has(id)).length
  const lost = Math.min(300, before.size) - modified
  await io.print(
    `\nThe service changes: ${count(modified + lost)} reviews are modified, then ${count(deleted)} ` +
      `are deleted${lost === 0 ? '' : `, ${count(lost)} of the modified ones among them`}, and ` +
      `${count(added)} arrive.\n` +
      `To read: ${count(modified)} modified and ${count(added)} new reviews, ` +
      `${count(modified + added)} in all, and ${count(deleted)} deletions; ${count(before.size)} ` +
      `- ${count(deleted)} + ${count(added)} = ${count(after.size)} reviews remain.\n`,
  )
}

/**
 * What the service resembles, if the streams by entity are read too, and the clock of both, in milliseconds since 1970.
 */
type DemoChoice = { readonly like: ServiceKind; readonly isFull: boolean; readonly now: () => number }

/** What a demo sync reads, and the service that it is compared with. */
type DemoSync = { readonly source: ConfiguredSource; readonly sandbox: Sandbox; readonly streams: typeof streams }

/** These need many requests, too many for a first look. */
const entityStreams = ['comments', 'transparency_reviews', 'entity_ratings']

/** Runs two syncs and changes the service's data between them. Returns true if all checks hold. */
const runSteps = async (io: CommandIo, sandbox: Sandbox, choice: DemoChoice): Promise<boolean> => {
  const { like, isFull, now } = choice
  const opened = getOrThrow(
    createSource(toDemoConfig(sandbox, isFull), {
      clock: (stop) => ({ ...systemClock(stop), now }),
      proxyVariables: io.env,
    }),
  )
  const source = { ...opened, env: { ...opened.env, now } }
  const chosen = streams.filter(({ name }) => isFull || !entityStreams.includes(name))
  try {
    await io.print(
      `A service with ${(await sandbox.truth()).reviews.length.toLocaleString('en')} ` +
        `reviews, ${kindNames[like]}, listens at ${sandbox.url}.\n`,
    )
    for (const warning of await runOrThrow(checkSource(source))) io.printWarning(warning)
    await io.print('check     address, token and permissions are good\n')
    await io.print(`discover  ${chosen.map(({ name }) => name).join(', ')}\n`)
    for (const name of [snapshotPath, `${snapshotPath}.wal`]) await rm(name, { force: true })
    const syncAll = (title: string) => syncAndVerify(io, { source, sandbox, streams: chosen }, title)
    const firstOk = await syncAll('The first sync reads everything into')
    await changeService(io, sandbox)
    sandbox.forward(quietSeconds)
    return (await syncAll('The second sync reads the changes into')) && firstOk
  } finally {
    await source.close()
  }
}

/**
 * A sync leaves the changes of the last 5 seconds to the next one, so the service's clock moves forward by more than
 * that.
 */
const quietSeconds = 6

/** Runs one sync and verifies its file. Returns true if both succeeded. */
const syncAndVerify = async (
  io: CommandIo,
  { source, sandbox, streams }: DemoSync,
  title: string,
): Promise<boolean> => {
  await io.print(`\n${title} ${snapshotPath}:\n\n`)
  const { outcome, streams: outcomes } = await syncSnapshot(io, source, {
    path: snapshotPath,
    streams,
    syncMode: 'incremental',
    history: true,
  })
  await io.print(formatSyncOutcome(outcomes))
  if (io.stop.aborted) throw new CommandError(systemFailure('The demo was stopped. Run it again: it starts over.'))
  return useSnapshot(snapshotPath, 'read', async (snapshot) => {
    const results = await verifySnapshot(snapshot, findStateProblem)
    const failed = results.filter(({ ok }) => !ok)
    for (const { name, explain, examples } of failed)
      io.printWarning(`verify: ${name} fails. ${explain} ${examples.join('; ')}`)
    const loadedReviews = Number(await snapshot.db.scalar('SELECT count(*) FROM reviews'))
    const serviceReviews = (await sandbox.truth()).reviews.length
    await io.print(
      `\nverify    ${formatCheckCounts(results)}; ${loadedReviews.toLocaleString('en')} ` +
        `reviews in the file, ${serviceReviews.toLocaleString('en')} in the service\n`,
    )
    return outcome === 'complete' && failed.length === 0
  })
}

const kindNames: Readonly<Record<ServiceKind, string>> = {
  specification: 'like the specification',
  published: 'like published deployments',
}

/** The connector's configuration for a sandbox. */
const toDemoConfig = ({ url, applicationId, applicationSecret }: Sandbox, isFull: boolean) =>
  getOrThrow(
    sourceFormat.decode({
      base_url: url,
      credentials: {
        auth_type: 'application',
        application_id: applicationId,
        application_secret: applicationSecret,
      },
      start_date: '2000-01-01T00:00:00Z',
      ...(isFull ? { entities: { from_reviews: { locations: true } } } : {}),
      feedback_filters: { per_page: feedbackPageSize },
    }),
  ).config
