import { defineCommand, usageError } from '../cdk'
import { readReport, renderReport } from '../snapshot'
import { dbOption, waitOption } from './options'
import { refuseDatabaseAsOutput, toFileWait, useSnapshot, writeOutputFile } from './snapshot-file'
import { formatJson } from './table'

export const reportCommand = defineCommand({
  name: 'report',
  summary: 'Writes the content of a snapshot, and whether its checks pass, as one HTML page.',
  options: {
    db: dbOption,
    wait: waitOption,
    out: { type: 'string', value: 'FILE', help: 'The page to write; an existing file is replaced' },
    json: { type: 'boolean', help: "Print the page's numbers as JSON" },
  },
  examples: [
    'feedback report --db reviews.duckdb --out report.html',
    `feedback report --db reviews.duckdb --json | jq '.locations[:5]'`,
  ],
  notes:
    'The page contains everything it shows: it opens without a network, has a light and a dark theme, and prints. Exit status: 0, also if a check fails, which the page then says.',
  run: async (io, { options: { db, wait, out, json } }) => {
    if (out === undefined && !json) throw usageError('Give --out FILE for the page to write, or --json.')
    if (out !== undefined) await refuseDatabaseAsOutput(out, db)
    const report = await useSnapshot(db, 'read', (snapshot) => readReport(snapshot, Date.now()), toFileWait(io, wait))
    if (json) await io.print(formatJson(report))
    if (out !== undefined) await writeOutputFile(out, renderReport(report))
    if (out !== undefined && !json) await io.print(`${out} is written.\n`)
    for (const { name, explain } of report.health.checks.filter(({ ok }) => !ok))
      io.printWarning(`The check "${name}" fails: ${explain} See feedback verify.`)
    return 0
  },
})
