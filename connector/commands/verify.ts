import { command } from '../cdk/cli'
import { type CheckResult, verify as verifySnapshot } from '../snapshot/verify'
import { columns } from './columns'
import { dbOption, withSnapshot } from './db-option'

export const verify = command({
  name: 'verify',
  summary: 'Checks that a snapshot is whole and says what is wrong with it.',
  options: {
    db: dbOption,
    json: { type: 'boolean', help: 'Print the results as JSON' },
    explain: { type: 'boolean', help: 'Say what each check means, and its SQL' },
  },
  examples: ['feedback verify --db reviews.duckdb', 'feedback verify --db reviews.duckdb --explain'],
  notes: 'Exit status: 0 all is well, 1 a check failed.',
  run: (io, { options }) =>
    withSnapshot(String(options.db), 'read', async (snapshot) => {
      const results = await verifySnapshot(snapshot)
      await io.print(
        options.json === true ? `${JSON.stringify(results, null, 2)}\n` : report(results, options.explain === true),
      )
      return results.every(({ ok }) => ok) ? 0 : 1
    }),
})

const report = (results: ReadonlyArray<CheckResult>, explain: boolean): string => {
  const failed = results.filter(({ ok }) => !ok)
  const table = columns(
    ['check', 'result', 'found'],
    results.map((result) => [
      result.name,
      verdictOf(result),
      result.failures === 0 ? '' : result.failures.toLocaleString('en'),
    ]),
  )
  const told = (explain ? results : results.filter(({ failures }) => failures > 0)).map(
    ({ name, explain: meaning, sql, failures, examples }) =>
      [
        `\n${name}: ${meaning}\n`,
        ...examples.map((example) => `  ${example}\n`),
        failures > examples.length ? `  and ${(failures - examples.length).toLocaleString('en')} more\n` : '',
        explain && sql !== undefined ? `${sql.replace(/^\n+/, '').trimEnd()}\n` : '',
      ].join(''),
  )
  const verdict = failed.length === 0 ? 'All checks passed.' : `${failed.length} of ${results.length} checks failed.`
  return `${table}${told.join('')}\n${verdict}\n`
}

const verdictOf = ({ ok, failures, sql }: CheckResult): string => {
  if (!ok) return 'FAILED'
  return sql === undefined ? 'nothing to check' : failures > 0 ? 'note' : 'ok'
}
