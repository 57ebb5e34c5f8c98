import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { command, type Io, misused, Stopped } from '../cdk/cli'
import { systemFailure } from '../cdk/failure'
import { readConfig } from '../config'
import { orStop, runOrStop } from '../load'
import { probe } from '../probe'
import { type Sandbox, startSandbox } from '../sandbox/start'
import { readReport } from '../snapshot/report'
import { page } from '../snapshot/report/page'
import { openSnapshot } from '../snapshot/snapshot'
import { verify } from '../snapshot/verify'
import { streams } from '../streams'
import { syncInto, table } from '../sync'
import { type Wired, wire } from '../wire'
import { withSnapshot } from './db-option'

/** The demo's own file, in the folder it is run in; replaced at each run. */
const path = 'feedback-demo.duckdb'

/** Of public reviews and comments; many small pages would be most of what there is to wait for. */
const perPage = 500

const queries = [
  `SELECT source->>'name' AS source, count(*) AS reviews, round(avg(rating), 2) AS rating FROM reviews GROUP BY 1 ORDER BY 2 DESC`,
  `SELECT location->>'name' AS location, round(avg(reviewScore), 2) AS score FROM reviews GROUP BY 1 ORDER BY 2 DESC LIMIT 5`,
  `SELECT date_trunc('month', mentionTime) AS month, count(*) AS reviews FROM reviews GROUP BY 1 ORDER BY 1 DESC LIMIT 6`,
]

export const demo = command({
  name: 'demo',
  summary: 'Shows the connector at work on a service of its own: sync, change, sync again, verify.',
  options: {
    reviews: { type: 'string', value: 'N', help: 'How many reviews the service holds; 10000 unless told' },
  },
  examples: ['feedback demo', 'feedback demo --reviews 2000'],
  notes: `Writes ${path} and nothing else into this folder; what stood there is replaced. The report goes into a fresh folder of the system's temporary files; the last line names it. Exit status: 0, or 1 if a check failed.`,
  run: async (io, { options }) => {
    const begun = Date.now()
    const reviews = Number(options.reviews ?? 10_000)
    if (!Number.isInteger(reviews) || reviews < 1)
      throw misused(`--reviews must be a whole number from 1 on, not ${options.reviews}.`)
    io.progress('Starting a service on this machine…')
    const sandbox = await startSandbox({ reviews, limits: { perPage } })
    try {
      const ok = await walk(io, sandbox)
      await io.print(
        `\nDone in ${((Date.now() - begun) / 1000).toFixed(0)} s. ${ok ? 'Try next:' : 'Something is wrong, see above.'}\n`,
      )
      if (ok) for (const sql of queries) await io.print(`  node build/bin/feedback.js query --db ${path} "${sql}"\n`)
      await io.print(`\nIts report, for a browser: ${await writeReport()}\n`)
      return ok ? 0 : 1
    } finally {
      await sandbox.close()
    }
  },
})

/** Outside the folder the demo runs in, where it leaves its one file and nothing else. */
const writeReport = async (): Promise<string> => {
  const out = join(await mkdtemp(join(tmpdir(), 'feedback-demo-')), 'report.html')
  await writeFile(out, page(await withSnapshot(path, 'read', (snapshot) => readReport(snapshot, Date.now()))))
  return out
}

const walk = async (io: Io, sandbox: Sandbox): Promise<boolean> => {
  const wired = orStop(wire(configOf(sandbox)))
  try {
    await io.print(
      `A service with ${(await sandbox.truth()).reviews.length.toLocaleString('en')} reviews listens at ${sandbox.url}.\n`,
    )
    for (const warning of await runOrStop(probe(wired))) io.warn(warning)
    await io.print('check     address, token and permissions are good\n')
    await io.print(`discover  ${streams.map(({ name }) => name).join(', ')}\n`)
    for (const name of [path, `${path}.wal`]) await rm(name, { force: true })
    const first = await round(io, wired, 'The first sync reads everything into', sandbox)
    await sandbox.churn({ change: 300, delete: 100, add: 200 })
    await io.print('\nThe service changes: 300 reviews are modified, 100 deleted, 200 arrive.\n')
    await settle(io)
    return (await round(io, wired, 'The second sync reads what is new into', sandbox)) && first
  } finally {
    await wired.close()
  }
}

/** A run leaves what changed in its last 5 seconds for the next one, so the demo lets the changes grow older than that. */
const settle = async (io: Io): Promise<void> => {
  for (let left = 6; left > 0 && !io.stop.aborted; left -= 1) {
    io.progress(`A sync leaves the last 5 seconds for the next one; waiting ${left} s…`)
    await setTimeout(1000)
  }
}

/** One sync and one look at the outcome; a person reads the words, so they say what was compared with what. */
const round = async (io: Io, wired: Wired, title: string, sandbox: Sandbox): Promise<boolean> => {
  await io.print(`\n${title} ${path}:\n\n`)
  const { ending, outcomes } = await syncInto(io, wired, { path, streams, syncMode: 'incremental' })
  io.progress('')
  await io.print(table(outcomes))
  if (io.stop.aborted) throw new Stopped(systemFailure('The demo was stopped.'))
  const snapshot = await runOrStop(openSnapshot(path, 'read'))
  try {
    const results = await verify(snapshot)
    const failed = results.filter(({ ok }) => !ok)
    for (const { name, explain, examples } of failed)
      io.warn(`verify: ${name} fails. ${explain} ${examples.join('; ')}`)
    const held = Number(await snapshot.db.scalar('SELECT count(*) FROM reviews'))
    const there = (await sandbox.truth()).reviews.length
    await io.print(
      `\nverify    ${results.length - failed.length} of ${results.length} checks hold; ${held.toLocaleString('en')} reviews in the file, ${there.toLocaleString('en')} in the service\n`,
    )
    return ending === 'complete' && failed.length === 0
  } finally {
    snapshot.db.close()
  }
}

const configOf = ({ url, applicationId, applicationSecret, tokenUrl }: Sandbox) =>
  orStop(
    readConfig({
      base_url: url,
      credentials: {
        auth_type: 'application',
        application_id: applicationId,
        application_secret: applicationSecret,
        token_url: tokenUrl,
      },
      start_date: '2000-01-01T00:00:00Z',
      entities: { from_reviews: { locations: true } },
      feedback_filters: { per_page: perPage },
    }),
  ).config
