export const median = (values) => {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length / 2
  return Number.isInteger(middle) ? (sorted[middle - 1] + sorted[middle]) / 2 : sorted[Math.floor(middle)]
}

/** The medians of a row's runs: records/s, records/s of CPU, MB/s of served records, CPU seconds, peak MiB. */
export const summary = (runs, records, recordBytes) => {
  const seconds = median(runs.map((run) => run.seconds))
  const cpu = median(runs.map((run) => run.cpu))
  return {
    records,
    runs: runs.length,
    rate: records / seconds,
    megabytes: (records * recordBytes) / seconds / 1e6,
    seconds,
    cpu,
    work: records / cpu,
    peak: median(runs.map((run) => run.peak)),
  }
}

/** The smallest ratio to the written figure that does not count as a drop. */
const leastShare = 0.8

/**
 * Each comparison with its value and, if it has a bound, if it holds; `fell`: it is a fifth worse than the written
 * figure.
 */
export const compare = (comparisons, figures) =>
  comparisons
    .filter(({ of, to }) => figures[of] !== undefined && (to === undefined || figures[to] !== undefined))
    .map((comparison) => {
      const { of, to, figure, less = 0, atLeast, atMost, written } = comparison
      const value = (figures[of][figure] - less) / (to === undefined ? 1 : figures[to][figure])
      const bounded = atLeast !== undefined || atMost !== undefined
      return {
        ...comparison,
        value,
        ...(written === undefined
          ? {}
          : { fell: atMost === undefined ? value < written * leastShare : value > written / leastShare }),
        ...(bounded ? { holds: value >= (atLeast ?? 0) && value <= (atMost ?? Infinity) } : {}),
      }
    })

const columns = [
  ['', ({ name }) => name],
  ['records', ({ records }) => records.toLocaleString('en')],
  ['records/s', ({ rate }) => Math.round(rate).toLocaleString('en')],
  ['MB/s', ({ megabytes }) => megabytes.toFixed(0)],
  ['seconds', ({ seconds }) => seconds.toFixed(2)],
  ['CPU s', ({ cpu }) => cpu.toFixed(2)],
  ['peak MiB', ({ peak }) => peak.toFixed(0)],
  ['runs', ({ runs }) => String(runs)],
]

/** The figures as a table, one line a row. */
export const table = (figures) => {
  const lines = [columns.map(([title]) => title), ...figures.map((row) => columns.map(([, cell]) => cell(row)))]
  const widths = columns.map((_, index) => Math.max(...lines.map((line) => line[index].length)))
  return lines.map((line) =>
    line.map((cell, at) => (at === 0 ? cell.padEnd(widths[at]) : cell.padStart(widths[at]))).join('  '),
  )
}

/** A comparison as one line of text. */
export const line =
  (names) =>
  ({ of, to, figure, less, atLeast, atMost, value, holds, written, fell }) => {
    const first = less === undefined ? names[of] : `(${names[of]} - ${less})`
    const figureName = figure === 'work' ? 'work by CPU' : figure
    const subject = to === undefined ? `${first}: ${figureName}` : `${first} / ${names[to]}: ${figureName}`
    const bound = atLeast === undefined ? `at most ${atMost}` : `at least ${atLeast}`
    const note = fell === true ? ` FELL from ${written}` : ''
    const goal = holds === undefined ? '' : ` (to reach: ${bound}; ${holds ? 'reached' : 'not reached'})`
    return `${subject} ${value.toFixed(2)}${note}${goal}`
  }
