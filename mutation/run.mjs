import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { rooms } from './rooms.mjs'
import { readReport, readSurvivors } from './survivors.mjs'

const { values } = parseArgs({
  options: {
    room: { type: 'string', multiple: true, default: Object.keys(rooms) },
    file: { type: 'string', multiple: true },
    concurrency: { type: 'string', default: '1' },
    fresh: { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

const usage = `npm run mutate -- [--room ${Object.keys(rooms).join('|')}]… [--file NAME]… [--concurrency N] [--fresh] [--quick]

Changes the source in one place after the other, and tells which changes no test notices. Fails if one of them is not in
mutation/survivors.md; of a file that has no heading there the survivors are only told. Results are kept in .scratch/mutation:
the next run tries again what has changed since and what only took too long, --fresh all.
--quick leaves out the tests that look at last, where a room has such (mutation/rooms.mjs): for trying a new test.
`

const root = dirname(import.meta.dirname)
const results = '.scratch/mutation'
const fail = (message) => {
  process.stderr.write(`mutate: ${message}\n`)
  process.exit(2)
}

const install = () => {
  if (existsSync(join(import.meta.dirname, 'node_modules/@stryker-mutator/core'))) return
  const { status } = spawnSync('npm', ['ci', '--no-audit'], { cwd: import.meta.dirname, stdio: ['ignore', 2, 2] })
  if (status !== 0) fail('npm ci in mutation/ failed')
}

const runStryker = (file, tests, report, room) => {
  const { status } = spawnSync(
    join(import.meta.dirname, 'node_modules/.bin/stryker'),
    ['run', 'mutation/stryker.config.mjs'],
    {
      cwd: root,
      stdio: ['ignore', 2, 2],
      env: {
        ...process.env,
        ...room.env,
        MUTATION_FILE: file,
        MUTATION_TESTS: tests.join(','),
        MUTATION_REPORT: report,
        MUTATION_CONCURRENCY: values.concurrency,
        MUTATION_TEST_TIMEOUT: String(room.testTimeout ?? 60_000),
        MUTATION_WITHOUT: room.without?.names ?? '',
      },
    },
  )
  rmSync(join(root, results, 'work'), { recursive: true, force: true })
  if (status !== 0) fail(`the run of ${file} failed`)
}

/**
 * Nothing is kept of a mutant that only took too long, since perhaps the machine was busy, nor of one that survived where a file is
 * loaded: it is not known which tests look at it, so Stryker would not try it with new ones.
 */
const forgetUncertain = (incremental) => {
  const report = JSON.parse(readFileSync(incremental, 'utf8'))
  for (const file of Object.values(report.files))
    file.mutants = file.mutants.filter(
      ({ status, static: isStatic }) => status !== 'Timeout' && !(isStatic && status === 'Survived'),
    )
  writeFileSync(incremental, JSON.stringify(report))
}

/** Mutates one file: the tests that kill fast first, the others on what they leave alive. */
const mutateFile = (name, file) => {
  const room = rooms[name]
  const report = `${results}/${name}/${file.replace(/\.ts$/, '.json')}`
  const incremental = report.replace(/\.json$/, '.incremental.json')
  if (values.fresh) rmSync(join(root, incremental), { force: true })
  mkdirSync(join(root, dirname(report)), { recursive: true })
  const source = `connector/${name}/${file}`
  const all = readdirSync(join(root, room.tests)).filter(
    (test) =>
      test.endsWith('.test.ts') && !room.without?.files?.includes(test) && (room.files?.[file]?.includes(test) ?? true),
  )
  const fast = all.filter((test) => !room.later?.includes(test))
  const paths = (tests) => tests.map((test) => `${room.tests}/${test}`)
  const isFirst = !existsSync(join(root, incremental))
  if (!isFirst) forgetUncertain(join(root, incremental))
  if (values.quick || (isFirst && room.later !== undefined)) {
    runStryker(source, paths(fast), report, room)
    forgetUncertain(join(root, incremental))
  }
  if (!values.quick) runStryker(source, paths(all), report, room)
  return readReport(JSON.parse(readFileSync(join(root, report), 'utf8')), source)
}

const percent = (killed, all) => (all === 0 ? '–' : `${((100 * killed) / all).toFixed(1)} %`)

const main = () => {
  if (values.help) return process.stdout.write(usage)
  const unknown = values.room.find((name) => rooms[name] === undefined)
  if (unknown !== undefined) fail(`no room ${unknown}; there are ${Object.keys(rooms).join(', ')}`)
  install()
  const listed = readSurvivors(readFileSync(join(import.meta.dirname, 'survivors.md'), 'utf8'))
  let newSurvivors = 0
  for (const name of values.room) {
    const files = readdirSync(join(root, 'connector', name)).filter(
      (file) => file !== 'index.ts' && (values.file?.includes(file.replace(/\.ts$/, '')) ?? true),
    )
    let [killed, mutants] = [0, 0]
    for (const file of files) {
      const { alive, ...counts } = mutateFile(name, file)
      const isJudged = listed.has(`${name}/${file}`)
      const known = listed.get(`${name}/${file}`) ?? new Set()
      const fresh = alive.filter((one) => !known.has(one.name))
      const gone = [...known].filter((one) => !alive.some((other) => other.name === one))
      const all = counts.killed + alive.length
      process.stdout.write(
        `${name}/${file}: ${all} mutants, ${counts.killed} killed (${counts.timedOut} by their time), ${alive.length} survived: ${percent(counts.killed, all)}${isJudged ? '' : '; not judged yet'}\n`,
      )
      for (const one of fresh) process.stdout.write(`  not in survivors.md, line ${one.line}:\n  - ${one.name}\n`)
      for (const one of gone) process.stdout.write(`  killed now, remove it from survivors.md:\n  - ${one}\n`)
      killed += counts.killed
      mutants += all
      if (isJudged) newSurvivors += fresh.length
    }
    process.stdout.write(`${name}: ${killed} of ${mutants} mutants killed: ${percent(killed, mutants)}\n`)
  }
  process.exitCode = newSurvivors > 0 ? 1 : 0
}

main()
