// Checks the models in this folder with TLC, which Maven installs: `npm run model [-- NAME…]`. See README.md.
import { spawn, spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { configurations, defaults, invariants } from './configurations.mjs'

const here = fileURLToPath(new URL('.', import.meta.url))
const tools = join(here, '../..', '.venv', 'model')

const fail = (message) => {
  throw new Error(message)
}

/** Installs the checker once, and again when pom.xml has changed; the path of its jar. */
const installChecker = () => {
  const pom = readFileSync(join(here, 'pom.xml'), 'utf8')
  const installed = join(tools, 'pom.xml')
  if (!existsSync(installed) || readFileSync(installed, 'utf8') !== pom) {
    rmSync(tools, { recursive: true, force: true })
    const goal = ['dependency:copy-dependencies', `-DoutputDirectory=${tools}`]
    const { status, error } = spawnSync('mvn', ['-q', '-B', '-f', join(here, 'pom.xml'), ...goal], { stdio: 'inherit' })
    if (error !== undefined || status !== 0)
      fail(
        'The checker cannot be installed. It needs a JDK, Maven and ' +
          'Maven Central: apt-get install default-jdk-headless maven.',
      )
    writeFileSync(installed, pom)
  }
  return join(tools, readdirSync(tools).find((name) => name.endsWith('.jar')) ?? '')
}

const toConfig = ({ spec, constants }) =>
  [
    'INIT Init',
    'NEXT Next',
    `INVARIANT ${invariants[spec]}`,
    ...(spec === 'Runs' ? ['SYMMETRY Symmetry'] : []),
    'CHECK_DEADLOCK FALSE',
    'CONSTANTS',
    ...Object.entries({ ...defaults[spec], ...constants }).map(([name, value]) => `  ${name} = ${value}`),
    ...(spec === 'Runs' ? ['  a = a', '  b = b', '  c = c'] : []),
    '',
  ].join('\n')

const statusOfViolation = 12

/** How many checks run at a time, since each has its own heap. */
const atATime = Math.min(2, availableParallelism())

/** Optimizing what the JVM compiles costs more than it saves in the few seconds that most checks take. */
const toJvmOptions = ({ spec, holds }) => [
  '-Xmx2g',
  '-XX:+UseSerialGC',
  ...(spec === 'Runs' && holds ? [] : ['-XX:TieredStopAtLevel=1']),
]

/** Runs a program to its end. */
const runToEnd = (command, args, cwd) =>
  new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd, stdio: ['ignore', 'pipe', 'pipe'] })
    const [stdout, stderr] = [[], []]
    child.stdout.on('data', (chunk) => stdout.push(chunk))
    child.stderr.on('data', (chunk) => stderr.push(chunk))
    child.once('error', (error) => reject(new Error(`${command} cannot be started: ${error.message}`)))
    child.once('close', (status) =>
      resolve({ status, stdout: Buffer.concat(stdout).toString(), stderr: Buffer.concat(stderr).toString() }),
    )
  })

/** Runs one configuration. Returns if the invariant holds, the number of states, and the states of a counterexample. */
const check = async (jar, configuration) => {
  const folder = mkdtempSync(join(tmpdir(), 'model-'))
  try {
    cpSync(join(here, `${configuration.spec}.tla`), join(folder, `${configuration.spec}.tla`))
    writeFileSync(join(folder, 'check.cfg'), toConfig(configuration))
    const jvm = [...toJvmOptions(configuration), `-Djava.io.tmpdir=${folder}`, '-cp', jar, 'tlc2.TLC']
    const options = ['-workers', '1', '-metadir', join(folder, 'states'), '-config', 'check.cfg']
    const started = Date.now()
    const { status, stdout, stderr } = await runToEnd('java', [...jvm, ...options, `${configuration.spec}.tla`], folder)
    const counts = [...stdout.matchAll(/([\d,]+) states generated.*?([\d,]+) distinct states found/g)].at(-1)
    if (counts === undefined || ![0, statusOfViolation].includes(status))
      fail(`${configuration.name}: the checker failed.\n${stdout}${stderr}`)
    return {
      holds: status === 0,
      states: counts[2],
      steps: [...stdout.matchAll(/^State \d+:/gm)].length,
      seconds: (Date.now() - started) / 1000,
      trace: stdout.slice(Math.max(0, stdout.indexOf('Error: The behavior'))),
    }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const main = async () => {
  const names = process.argv.slice(2)
  const unknown = names.filter((name) => configurations.every((one) => one.name !== name))
  if (unknown.length > 0)
    fail(
      `There is no configuration ${unknown.join(', ')}. Known: ${configurations.map(({ name }) => name).join(', ')}.`,
    )
  const chosen = names.length === 0 ? configurations : configurations.filter(({ name }) => names.includes(name))
  mkdirSync(join(here, '..', '.venv'), { recursive: true })
  const jar = installChecker()
  let failed = 0
  const checkAndTell = async (configuration) => {
    const { holds, states, steps, seconds, trace } = await check(jar, configuration)
    const isExpected = holds === configuration.holds
    if (!isExpected) failed += 1
    const found = holds ? 'no counterexample' : `a counterexample of ${steps} states`
    const size = `${states} distinct states, ${seconds.toFixed(0)} s`
    console.log(`${isExpected ? 'ok    ' : 'FAILED'}  ${configuration.name}: ${found}; ${size}`)
    if (!holds && (!isExpected || names.length > 0)) console.log(trace)
  }
  const waiting = [...chosen]
  const checkInTurn = async () => {
    try {
      for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await checkAndTell(next)
    } finally {
      // After a failure of the checker nothing more is begun.
      waiting.length = 0
    }
  }
  await Promise.all(Array.from({ length: atATime }, checkInTurn))
  console.log(`${chosen.length - failed} passed, ${failed} failed`)
  process.exitCode = failed === 0 ? 0 : 1
}

try {
  await main()
} catch (error) {
  console.error(error.message)
  process.exitCode = 1
}
