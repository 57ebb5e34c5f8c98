import type { Check } from './check'

/** Checks that no review in `_compared`, which `compareReviews` creates, has this verdict. */
const differenceCheck = (verdict: string, check: Pick<Check, 'name' | 'explain' | 'note'>): Check => ({
  ...check,
  needs: 'comparison',
  queries: () => [
    `
      SELECT 'id ' || id || concat(', ours of ' || ours, ', theirs of ' || theirs) AS what
      FROM _compared WHERE verdict = '${verdict}'`,
  ],
  subjects: () => ['_both'],
})

const repairHint = 'Repair it: feedback verify --config FILE --repair FOLDER.'

/** The checks of the reviews against those of the service. */
export const differenceChecks: ReadonlyArray<Check> = [
  differenceCheck('missing', {
    name: 'no review is missing',
    explain: `Every review of the service is in the file, or the next run brings it. ${repairHint}`,
  }),
  differenceCheck('stale', {
    name: 'no review is stale',
    explain: `Each review has the modified time that the service gives. ${repairHint}`,
  }),
  differenceCheck('extra', {
    name: 'no review is extra',
    explain: `The service has every review of the file. ${repairHint}`,
  }),
  differenceCheck('undone', {
    name: 'no deletion is undone',
    explain:
      'The service has none of the reviews that the file has deleted. It has restored ' +
      'these with a time before their deletion: the later event wins, so they stay deleted ' +
      'until the service changes them. feedback sync --start-anew reads everything again.',
  }),
  differenceCheck('forgotten', {
    name: 'forgotten on purpose',
    explain: 'Reviews of the service that feedback forget has erased from the file. No run brings them back.',
    note: true,
  }),
  differenceCheck('later', {
    name: 'not read yet',
    explain:
      'Reviews that the next run brings: it reads them again and does not know them as sent, ' +
      'they changed while the service was read, or start_date was moved back to before them.',
    note: true,
  }),
]
