import { rename, rm, writeFile } from 'node:fs/promises'
import { CommandError, configFailure, defineCommand, usageError } from '../cdk'
import { readReport, renderReport } from '../snapshot'
import { dbOption, useSnapshot } from './snapshot'

export const reportCommand = defineCommand({
  name: 'report',
  summary: 'Writes what a snapshot tells, and whether it may be trusted, as one HTML page.',
  options: {
    db: dbOption,
    out: { type: 'string', value: 'FILE', help: 'The page to write; what stands there is replaced' },
    json: { type: 'boolean', help: "Print the page's numbers as JSON" },
  },
  examples: [
    'feedback report --db reviews.duckdb --out report.html',
    `feedback report --db reviews.duckdb --json | jq '.locations[:5]'`,
  ],
  notes:
    'The page holds everything it shows: it opens without a network, follows light and dark, and prints. Exit status: 0, also where a check fails, which the page then says.',
  run: async (io, { options }) => {
    const out = options.out?.toString()
    if (out === undefined && options.json !== true)
      throw usageError('Say with --out FILE where the page is to be written, or ask for --json.')
    const made = await useSnapshot(String(options.db), 'read', (snapshot) => readReport(snapshot, Date.now()))
    if (options.json === true) await io.print(`${JSON.stringify(made, null, 2)}\n`)
    if (out !== undefined) await replaceFile(out, renderReport(made))
    if (out !== undefined && options.json !== true) await io.print(`${out} is written.\n`)
    for (const { name, explain } of made.health.checks.filter(({ ok }) => !ok))
      io.printWarning(`The check "${name}" fails: ${explain} See feedback verify.`)
    return 0
  },
})

/** Nobody who opens the page sees half of it. */
const replaceFile = async (path: string, text: string): Promise<void> => {
  const half = `${path}.tmp`
  try {
    await writeFile(half, text)
    await rename(half, path)
  } catch (error) {
    await rm(half, { force: true })
    throw new CommandError(
      configFailure(`${path} cannot be written. ${error instanceof Error ? error.message : error}`),
    )
  }
}
