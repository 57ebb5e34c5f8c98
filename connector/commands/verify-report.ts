import type { CheckResult } from '../snapshot/verify'
import { formatTable } from './columns'

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
