import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
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
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

const usage = `npm run bench -- [--pages N] [--runs N] [--only ${Object.keys({ ...rows, ...timings }).join(',')}] [--short] [--json]

Serves N pages (100) of 1,000 reviews from memory in another process and measures the connector beside its floors:
medians of so many runs (5), the rows taking turns. --short: 10 pages, 1 run.
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

/** Every record leaves as one line, beside a few lines that are no records. */
const whole = ({ prints }, records, { lines }) => !prints || (lines >= records && lines <= records * 1.02 + 50)

const bench = async (folder, server) => {
  const chosen = wanted(rows)
  const input = (name, value) => {
    const file = join(folder, name)
    writeFileSync(file, JSON.stringify(value))
    return file
  }
  const measured = new Map(chosen.map(([key]) => [key, []]))
  for (let round = 0; round < runs; round += 1)
    for (const [key, row] of chosen) {
      if (row.once && round > 0) continue
      const result = await row.run({ folder, input, url: server.url, pages: pages * row.scale })
      const records = pages * row.scale * perPage
      if (!whole(row, records, result)) throw new Error(`${row.name}: ${result.lines} lines for ${records} records`)
      measured.get(key).push(result)
      if (process.stderr.isTTY) process.stderr.write(`${row.name}: ${Math.round(records / result.seconds)} records/s\n`)
    }
  return Object.fromEntries(
    chosen.map(([key, row]) => [
      key,
      { name: row.name, ...summary(measured.get(key), pages * row.scale * perPage, server.recordBytes) },
    ]),
  )
}

const time = async () => {
  const figures = {}
  for (const [key, { name, run }] of wanted(timings)) figures[key] = { name, ms: median(await run(values)) }
  return figures
}

const print = (measured, timed) => {
  const figures = { ...measured, ...timed }
  const compared = compare(comparisons, figures)
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
    process.stdout.write(print(measured, await time()))
  } finally {
    server.stop()
    rmSync(folder, { recursive: true })
  }
}

if (values.help) process.stdout.write(usage)
else await main()
