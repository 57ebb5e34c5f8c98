import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { compare, line, median, summary, table } from './report.mjs'
import { comparisons, rows } from './rows.mjs'
import { timings } from './timings.mjs'

const { values } = parseArgs({
  options: {
    pages: { type: 'string' },
    runs: { type: 'string' },
    only: { type: 'string' },
    short: { type: 'boolean', default: false },
    hold: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

const usage = `npm run bench -- [--pages N] [--runs N] [--only ROW,…] [--short] [--hold] [--json]

Rows: ${Object.keys({ ...rows, ...timings }).join(', ')}.
Serves N pages (100) of 1,000 reviews from memory in another process and measures the connector beside its floors:
medians of that many runs (5), the rows taking turns. --short: 10 pages, 1 run. --hold: exits with 1 if a ratio is a
fifth worse than rows.mjs says.
`

const perPage = 1000
const pages = Number(values.pages ?? (values.short ? 10 : 100))
const runs = Number(values.runs ?? (values.short ? 1 : 5))
const wanted = (table) =>
  Object.entries(table).filter(([key]) => values.only === undefined || values.only.split(',').includes(key))

const serve = async () => {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'server.mjs')], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const [chunk] = await once(child.stdout, 'data')
  return { ...JSON.parse(chunk.toString()), stop: () => child.stdin.end() }
}

const bench = async (folder, server) => {
  const chosen = wanted(rows)
    .filter(([, row]) => row.prepare?.() ?? true)
    .map(([key, row]) => ({ key, pages: pages * (row.scale ?? 1), results: [], ...row }))
  for (let round = 0; round < runs; round += 1)
    for (const { name, once, lines, run, pages, results } of chosen) {
      if (once && round > 0) continue
      const result = await run({ folder, url: server.url, pages })
      const { least, most } = lines(pages * perPage)
      if (result.lines < least || result.lines > most)
        throw new Error(`${name}: printed ${result.lines} lines for ${pages * perPage} reviews`)
      results.push(result)
      if (process.stderr.isTTY) process.stderr.write(`${name}: ${result.seconds.toFixed(2)} s\n`)
    }
  return Object.fromEntries(
    chosen.map(({ key, name, pages, results }) => [
      key,
      { name, ...summary(results, pages * perPage, server.recordBytes) },
    ]),
  )
}

const time = async () => {
  const figures = {}
  for (const [key, { name, run }] of wanted(timings)) figures[key] = { name, ms: median(await run(values)) }
  return figures
}

const print = (figures, measured, timed, compared) => {
  const machine = { node: process.version, cores: availableParallelism(), runs, pages }
  if (values.json) return `${JSON.stringify({ machine, figures, comparisons: compared }, null, 2)}\n`
  const names = Object.fromEntries(Object.entries(figures).map(([key, { name }]) => [key, name]))
  return [
    ...(Object.keys(measured).length > 0 ? [...table(Object.values(measured)), ''] : []),
    ...Object.values(timed).map(({ name, ms }) => `${name}: ${ms.toFixed(1)} ms`),
    '',
    ...compared.map(line(names)),
    '',
  ].join('\n')
}

const main = async () => {
  const folder = mkdtempSync(join(tmpdir(), 'bench-'))
  const server = await serve()
  try {
    const measured = await bench(folder, server)
    const timed = await time()
    const figures = { ...measured, ...timed }
    const compared = compare(comparisons, figures)
    process.stdout.write(print(figures, measured, timed, compared))
    if (values.hold && compared.some(({ fell }) => fell)) process.exitCode = 1
  } finally {
    server.stop()
    rmSync(folder, { recursive: true })
  }
}

if (values.help) process.stdout.write(usage)
else await main()
