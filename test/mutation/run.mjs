import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { rooms } from './rooms.mjs'

const { values } = parseArgs({
  options: {
    room: { type: 'string', multiple: true, default: Object.keys(rooms) },
    file: { type: 'string', multiple: true },
    fresh: { type: 'boolean', default: false },
    test: { type: 'string', multiple: true },
    tries: { type: 'string', default: 'Infinity' },
    help: { type: 'boolean', default: false },
  },
})

const usage = `npm run mutate -- [--room ROOM]… [--file NAME]… [--test NAME]… [--tries N] [--fresh]
  Rooms: ${Object.keys(rooms).join(', ')}.

Changes the source in one place after the other, and prints the changes that no test notices and the score of each room.
Fails if the score of a whole room is below its threshold in test/mutation/thresholds.json.
Results are kept in .scratch/mutation: of an unchanged file the next run tries only what survived or took too long;
--fresh tries everything.
--test: runs only this file of tests, such as a new one; what it kills counts in the next full run.
--tries: tries each mutant with this many tests at most, for a first look.
`

const root = join(import.meta.dirname, '../..')
const results = join(root, '.scratch/mutation')
const thresholds = JSON.parse(readFileSync(join(import.meta.dirname, 'thresholds.json'), 'utf8'))
/** A run that reports nothing for this long, in milliseconds, hangs in the mutant that it tries. */
const longestSilence = 900_000
const fail = (message) => {
  process.stderr.write(`mutate: ${message}\n`)
  process.exit(2)
}

const install = () => {
  if (existsSync(join(import.meta.dirname, 'node_modules/@stryker-mutator/instrumenter'))) return
  const { status } = spawnSync('npm', ['ci', '--no-audit'], { cwd: import.meta.dirname, stdio: ['ignore', 2, 2] })
  if (status !== 0) fail('npm ci in test/mutation/ failed')
}

/**
 * Runs the tests of a plan; resolves to their exit status, or undefined if they reported nothing more and were killed.
 */
const runTests = (room, planPath, plan) =>
  new Promise((resolve) => {
    writeFileSync(planPath, JSON.stringify(plan))
    writeFileSync(plan.results, '')
    const child = spawn(
      join(root, 'node_modules/.bin/vitest'),
      ['run', '--config', 'test/mutation/vitest.config.mts', '--reporter', 'dot'],
      {
        cwd: root,
        detached: true,
        stdio: ['ignore', plan.active === undefined ? 2 : 'ignore', plan.active === undefined ? 2 : 'ignore'],
        env: { ...process.env, ...room.env, MUTATION_PLAN: planPath, MUTATION_WITHOUT: room.without?.names ?? '' },
      },
    )
    const began = Date.now()
    let isHanging = false
    const timer = setInterval(() => {
      if (Date.now() - Math.max(began, statSync(plan.results).mtimeMs) < longestSilence) return
      isHanging = true
      process.kill(-child.pid, 'SIGKILL')
    }, 5000)
    child.on('exit', (status) => {
      clearInterval(timer)
      resolve(isHanging ? undefined : (status ?? 1))
    })
  })

const readLines = (path) =>
  readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))

/** Mutates one file; resolves to its report: how each mutant ended. */
const mutateFile = async (name, file) => {
  const { instrumentSource } = await import('./instrument.mjs')
  const room = rooms[name]
  const base = join(results, name, file.replace(/\.ts$/, ''))
  const own = values.test === undefined ? base : `${base}.${values.test.join('.')}`
  const [reportPath, planPath, linesPath] = [`${own}.json`, `${own}.plan.json`, `${own}.lines.jsonl`]
  mkdirSync(dirname(base), { recursive: true })
  const path = join(root, 'connector', name, file)
  const source = readFileSync(path, 'utf8')
  const { text, mutants } = await instrumentSource(path, source)
  const ends = new Map()
  const note = (lines) => {
    for (const { id, status, by } of lines) if (status === 'Killed') ends.set(id, { status, by })
  }
  // What earlier runs killed stays killed, including runs that were stopped and runs of some tests only.
  for (const each of values.fresh ? [] : readdirSync(dirname(base))) {
    if (!each.startsWith(`${file.replace(/\.ts$/, '')}.`) || !each.endsWith('.json')) continue
    const earlier = JSON.parse(readFileSync(join(dirname(base), each), 'utf8'))
    if (earlier.source !== source) continue
    note(earlier.mutants)
    if (each.endsWith('.plan.json')) note(readLines(join(dirname(base), each.replace(/\.plan\.json$/, '.lines.jsonl'))))
  }
  const all = readdirSync(join(root, room.tests)).filter((test) => test.endsWith('.test.ts'))
  const tests = (values.test?.map((test) => `${test}.test.ts`) ?? room.files?.[file] ?? all)
    .filter((test) => !room.without?.files?.includes(test))
    .toSorted((a, b) => Number(room.later?.includes(a) ?? false) - Number(room.later?.includes(b) ?? false))
    .map((test) => `${room.tests}/${test}`)
  const plan = { path, source, text, tests, results: linesPath, tries: Number(values.tries) }
  const [reached, loaded, doubtful] = [new Set(), new Set(), new Set()]
  const save = () => {
    const report = {
      source,
      mutants: mutants.map((mutant) => ({
        ...mutant,
        ...(ends.get(mutant.id) ?? {
          status: reached.has(mutant.id) || loaded.has(mutant.id) ? 'Survived' : 'NoCoverage',
        }),
      })),
    }
    writeFileSync(reportPath, JSON.stringify(report, undefined, 1))
    return report
  }
  save()
  for (;;) {
    const left = mutants.map(({ id }) => id).filter((id) => !ends.has(id))
    const status = await runTests(room, planPath, { ...plan, mutants: left })
    let trying
    for (const line of readLines(plan.results)) {
      for (const id of line.reached ?? []) reached.add(id)
      for (const id of line.loaded ?? []) loaded.add(id)
      if (line.status === 'Doubtful') doubtful.add(line.id)
      else if (line.id !== undefined) ends.set(line.id, { status: line.status, by: line.by })
      if (line.trying !== undefined) trying = line.trying
      if (line.tried !== undefined) trying = undefined
    }
    save()
    // A test may also fail because of what an earlier mutant left behind. It then kills nothing.
    if (trying === undefined && (status === 0 || reached.size > 0)) break
    if (trying === undefined) fail(`the tests of ${file} fail without a mutant`)
    // This one killed the process, or made it hang.
    ends.set(trying, { status: 'Timeout', by: 'the end of its process' })
  }
  // Values that are read when the file is loaded can only be changed in a separate process.
  for (const { id } of mutants) {
    if (ends.has(id) || !(doubtful.has(id) || (loaded.has(id) && !reached.has(id)))) continue
    const alone = { ...plan, mutants: [], active: id, results: `${own}.alone.jsonl` }
    const status = await runTests(room, `${own}.alone-plan.json`, alone)
    if (status !== 0) ends.set(id, { status: status === undefined ? 'Timeout' : 'Killed', by: 'a process of its own' })
    save()
  }
  return save()
}

const isAlive = ({ status }) => status === 'Survived' || status === 'NoCoverage'

/** The share of mutants that were killed, in percent. */
const scoreOf = (mutants) =>
  mutants.length === 0 ? 100 : 100 - (100 * mutants.filter(isAlive).length) / mutants.length

const describeScore = (mutants) => {
  const [alive, late] = [mutants.filter(isAlive).length, mutants.filter(({ status }) => status === 'Timeout').length]
  return (
    `${mutants.length} mutants, ${mutants.length - alive} killed (${late} by taking too long), ` +
    `${alive} survived: ${scoreOf(mutants).toFixed(1)} %`
  )
}

const describeSurvivor = (source, { location: { start, end }, replacement }) => {
  const lines = source.split('\n').slice(start.line - 1, end.line)
  lines[lines.length - 1] = lines.at(-1).slice(0, end.column - 1)
  const [before, after] = [lines.join('\n').slice(start.column - 1), replacement].map((text) => {
    const line = text.replace(/\s+/g, ' ').trim()
    return line.length > 90 ? `${line.slice(0, 60)} … ${line.slice(-25)}` : line
  })
  return `  line ${start.line}: ${before} → ${after}\n`
}

/**
 * Mutates the chosen files of a room and prints what survived. Returns true if the room's score reaches its threshold.
 */
const mutateRoom = async (name) => {
  const files = listFiles(name).filter((file) => values.file?.includes(file.replace(/\.ts$/, '')) ?? true)
  const all = []
  for (const file of files) {
    const { source, mutants } = await mutateFile(name, file)
    process.stdout.write(`${name}/${file}: ${describeScore(mutants)}\n`)
    for (const mutant of mutants.filter(isAlive)) process.stdout.write(describeSurvivor(source, mutant))
    all.push(...mutants)
  }
  const isWhole = values.file === undefined && values.test === undefined && values.tries === 'Infinity'
  const threshold = isWhole ? thresholds[name] : undefined
  const isReached = threshold === undefined || scoreOf(all) >= threshold
  process.stdout.write(
    `${name}: ${describeScore(all)}${threshold === undefined ? '' : `; the threshold is ${threshold} %`}` +
      `${isReached ? '' : ', FAILED'}\n`,
  )
  return isReached
}

const listFiles = (name) => readdirSync(join(root, 'connector', name)).filter((file) => file !== 'index.ts')

const main = async () => {
  if (values.help) return process.stdout.write(usage)
  const unknown = values.room.find((name) => rooms[name] === undefined)
  if (unknown !== undefined) fail(`no room ${unknown}; there are ${Object.keys(rooms).join(', ')}`)
  const all = values.room.flatMap((name) => listFiles(name))
  const missing = values.file?.find((name) => !all.includes(`${name}.ts`))
  if (missing !== undefined)
    fail(`no file ${missing}; there are ${all.map((file) => file.replace(/\.ts$/, '')).join(', ')}`)
  install()
  for (const name of values.room) if (!(await mutateRoom(name))) process.exitCode = 1
}

await main()
