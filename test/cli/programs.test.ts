import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { configFailure, systemFailure, transientFailure } from '../../connector/cdk/failure'
import { joinText } from '../../connector/cdk/lines'
import { failureStatus, reportAirbyteFailure } from '../../connector/cdk/program/exit'
import { runCommandLine } from '../../connector/cdk/program/run-command'
import { protocols } from '../../connector/cdk/protocols'
import { type ProgramName, platformPrograms, programs } from '../../connector/cli/programs'
import manifest from '../../package.json'
import { createTestIo, toInput } from '../support/command-io'
import {
  airbyteFormat,
  configuredCatalogOf,
  formatLines,
  formatStream,
  locationRow,
  singerFormat,
} from '../support/destination-input'
import { writeTempFile } from '../support/files'
import { runProgram as runBuiltProgram } from '../support/program'
import { reviewsConfig, startSmallSandbox } from '../support/sandbox'

const neverCrashes = new Promise<never>(() => undefined)

/** Runs a program in this process. */
const run = async (name: ProgramName, args: ReadonlyArray<string>, stdin = '') => {
  const [out, err]: [string[], string[]] = [[], []]
  const io = createTestIo(toInput(stdin), async (text) => void out.push(joinText(text)), {
    printWarning: (line) => err.push(line),
  })
  const status = await runCommandLine(name, programs[name], io, args, neverCrashes)
  return { status, stdout: out.join(''), stderr: err.join('\n') }
}

const programNames = [...Object.keys(platformPrograms), 'feedback'] as ReadonlyArray<ProgramName>
const withVerbs = ['source-feedback', 'destination-feedback', 'feedback'] as const
const withoutVerbs = ['tap-feedback', 'target-feedback'] as const

describe('the table of programs', () => {
  it('pairs each side of a transfer with each protocol of the kit once', () => {
    const pairs = Object.values(platformPrograms).map(({ run, protocol }) => `${run} ${protocol}`)
    const sides = ['source', 'destination']
    expect(pairs.sort()).toEqual(
      sides.flatMap((side) => Object.keys(protocols).map((protocol) => `${side} ${protocol}`)).sort(),
    )
  })

  const sources = Object.entries(platformPrograms).filter(([, { run }]) => run === 'source')
  it.each(sources)('names the protocol that the output of %s is in', async (name, row) => {
    const config = writeTempFile(reviewsConfig(await startSmallSandbox()))
    const catalog = writeTempFile({
      streams: [{ stream: { name: 'reviews', json_schema: {} }, sync_mode: 'incremental' }],
    })
    const args = row.protocol === 'airbyte' ? ['read', '--config', config, '--catalog', catalog] : ['--config', config]
    const { status, stdout, stderr } = await run(name as ProgramName, args)
    expect(status, stderr).toBe(0)
    const first = Buffer.from(stdout.split('\n')[0] ?? '')
    const recognized = Object.entries(protocols).filter(([, { recognizes }]) => recognizes(first))
    expect(recognized.map(([protocol]) => protocol)).toEqual([row.protocol])
  })

  const destinations = Object.entries(platformPrograms).filter(([, { run }]) => run === 'destination')
  it.each(destinations)('names the protocol that %s reads and answers in', async (name, row) => {
    const { url, accessToken } = await startSmallSandbox()
    const config = writeTempFile({
      base_url: url,
      credentials: { auth_type: 'access_token', access_token: accessToken },
    })
    const catalog = writeTempFile(configuredCatalogOf({ locations: 'code' }))
    const [args, format] =
      row.protocol === 'airbyte'
        ? [['write', '--config', config, '--catalog', catalog], airbyteFormat]
        : [['--config', config], singerFormat]
    const records = [locationRow(1), locationRow(2)]
    const stdin = formatLines(formatStream(format, 'locations', 'code', records))
    const { status, stdout, stderr } = await run(name as ProgramName, args, stdin)
    expect(status, stderr).toBe(0)
    // An Airbyte destination prints the whole state message, a Singer target its value.
    const state = format.state('locations', records.length)
    expect(stdout).toContain(row.protocol === 'airbyte' ? '"destinationStats"' : `${JSON.stringify(state.value)}\n`)
  })
})

describe('runCommandLine', () => {
  it.each(withVerbs)(
    'prints the verbs of %s for --help, and with exit status 2 where the verb is missing',
    async (name) => {
      const help = await run(name, ['--help'])
      expect(help.status).toBe(0)
      expect(help.stdout).toMatch(new RegExp(`^Usage: ${name} VERB \\[options\\]\\n`))
      expect(help.stdout.match(/^ {2}[a-z]+ +[A-Z].*\.$/gm)?.length).toBeGreaterThanOrEqual(4)
      for (const args of [['-h'], ['help']]) expect(await run(name, args)).toEqual(help)
      for (const args of [[], ['']]) expect(await run(name, args)).toEqual({ ...help, status: 2 })
    },
  )

  it.each(withoutVerbs)('prints the options of %s, which has no verbs, for --help', async (name) => {
    const { status, stdout } = await run(name, ['--help'])
    expect(status).toBe(0)
    expect(stdout).toMatch(new RegExp(`^Usage: ${name} \\[options\\]\\n`))
    expect(stdout).toContain('  --config FILE|ENV')
  })

  it.each(withVerbs)('names the verbs of %s where the verb is wrong', async (name) => {
    for (const verb of ['reed', 'toString']) {
      const { status, stdout, stderr } = await run(name, [verb])
      expect([status, stdout]).toEqual([2, ''])
      expect(stderr).toMatch(new RegExp(`^${name}: there is no verb "${verb}"\\. Choose among \\w+, `))
    }
  })

  it('prints the help of a verb instead of running it', async () => {
    const { status, stdout } = await run('feedback', ['sync', '--config', 'none.json', '-h'])
    expect(status).toBe(0)
    expect(stdout).toMatch(/^Usage: feedback sync \[options\]\n/)
  })

  it.each(withVerbs)('names a wrong option of %s, and the help that lists the right ones', async (name) => {
    const verb = name === 'feedback' ? 'sync' : 'check'
    const { status, stderr } = await run(name, [verb, '--nope'])
    expect(stderr).toContain('--nope')
    expect(stderr).toContain(`See ${name} ${verb} --help.`)
    // `check` of a platform answers a wrong config on stdout, with exit status 0.
    expect(status).toBe(name === 'feedback' ? 2 : 0)
  })

  it('rejects with the error of a broken pipe, which has no reader to report to', async () => {
    const broken = Object.assign(new Error('write EPIPE'), { code: 'EPIPE' })
    const io = createTestIo(toInput(''), () => Promise.reject(broken))
    await expect(
      runCommandLine('source-feedback', programs['source-feedback'], io, ['spec'], neverCrashes),
    ).rejects.toBe(broken)
  })

  it('reports an error that was thrown where nothing awaits it', async () => {
    const out: string[] = []
    const io = createTestIo(toInput(''), async (text) => void out.push(joinText(text)))
    const crash = Promise.reject(new Error('out of nowhere'))
    crash.catch(() => undefined)
    expect(
      await runCommandLine(
        'source-feedback',
        programs['source-feedback'],
        io,
        ['check', '--config', 'none.json'],
        crash,
      ),
    ).toBe(1)
    expect(out.join('')).toContain('"failure_type":"system_error"')
  })
})

describe('a failure', () => {
  it('of an Airbyte program is a status for check and a trace for every other verb', async () => {
    const out: string[] = []
    const io = createTestIo(toInput(''), async (text) => void out.push(joinText(text)))
    const failure = configFailure('The config is wrong.')
    expect(await reportAirbyteFailure(io, failure, { program: 'source-feedback', verb: 'check' })).toBe(0)
    expect(await reportAirbyteFailure(io, failure, { program: 'source-feedback', verb: 'read' })).toBe(1)
    expect(out.map((line) => JSON.parse(line).type)).toEqual(['CONNECTION_STATUS', 'TRACE'])
  })

  it.each(withoutVerbs)('of %s is a line of its log', async (name) => {
    const { status, stdout, stderr } = await run(name, ['--config', 'none.json'])
    expect([status, stdout]).toEqual([1, ''])
    expect(stderr).toMatch(/^(ERROR|CRITICAL) The config file none\.json does not exist\./)
  })

  it('of feedback is a line on stderr', async () => {
    const { status, stdout, stderr } = await run('feedback', ['catalog', '--config', 'none.json'])
    expect([status, stdout, stderr]).toEqual([78, '', 'The config file none.json does not exist.'])
  })

  it.each(withoutVerbs)('of the command line of %s ends with exit status 2', async (name) => {
    for (const args of [[], ['--about', '--format', 'pdf'], ['--nope']]) {
      const { status, stdout, stderr } = await run(name, args)
      expect([args, status, stdout]).toEqual([args, 2, ''])
      expect(stderr).toMatch(/--(config is missing|format is wrong)|no option --nope/)
    }
  })
})

describe('the exit status of feedback', () => {
  const config = configFailure('c')
  const transient = transientFailure('t')
  const system = systemFailure('s')

  it.each([
    [[transient], 75],
    [[config], 78],
    [[system], 70],
    [[transient, config, system], 78],
    [[transient, system], 70],
    [[], 75],
  ])('tells what helps', (failures, status) => expect(failureStatus(failures)).toBe(status))

  const noFile = ['--db', '/nowhere/none.duckdb']
  const cases: ReadonlyArray<readonly [ReadonlyArray<string>, number]> = [
    [['sync', '--config', 'none.json', '--db', 'x.duckdb'], 78],
    [['catalog', '--config', 'ENV'], 78],
    [['verify', ...noFile], 78],
    [['diff', 'none-a.duckdb', 'none-b.duckdb'], 78],
    [['report', ...noFile, '--json'], 78],
    [['state', 'export', ...noFile], 78],
    [['query', ...noFile, 'SELECT 1'], 78],
    [['query', ...noFile], 2],
    [['sync'], 2],
    [['state', 'exprot'], 2],
    [['sandbox', '--reviews', 'many'], 2],
  ]
  it.each(cases)('%j ends with %i', async (args, status) => {
    expect((await run('feedback', args)).status).toBe(status)
  })

  it('is in the same table of running.md as those of signals', () => {
    const page = readFileSync(join(__dirname, '../../docs/running.md'), 'utf8')
    const section = page.slice(page.indexOf('## Exit status'))
    const statuses = [...section.matchAll(/^\| (\d+) \|/gm)].map(([, status]) => Number(status))
    expect(statuses).toEqual([0, 1, 2, 70, 75, 78, 130, 143])
  })
})

describe('with --json', () => {
  it.each([
    ['sync', '--config', 'none.json', '--db', 'x.duckdb'],
    ['catalog', '--config', 'none.json'],
    ['state', 'export', '--db', 'none.duckdb'],
    ['snapshot', '--db', '/nowhere/x.duckdb'],
    ['verify', '--db', 'none.duckdb'],
    ['verify', '--db', 'none.duckdb', '--confg', 'x'],
    ['replay', 'none.jsonl', '--db', '/nowhere/x.duckdb'],
    ['diff', 'a.duckdb', 'b.duckdb'],
    ['report', '--db', 'none.duckdb'],
    ['query', '--db', 'none.duckdb', 'SELECT 1'],
  ])('feedback %s %s %s prints a failure as JSON too', async (...args) => {
    const { stdout, stderr } = await run('feedback', [...args, '--json'])
    const { failure } = JSON.parse(stdout)
    expect(failure).toEqual({ type: 'config_error', message: stderr.split('\n')[0] })
  })
})

describe('every program', () => {
  const verbsOf = (name: ProgramName) => Object.keys(programs[name].commands)
  const commands = programNames.flatMap((name) => verbsOf(name).map((verb) => [name, verb] as const))

  it.each(programNames)('%s prints its version', async (name) => {
    const expected = { status: 0, stdout: `${name} ${manifest.version}\n`, stderr: '' }
    for (const verb of ['', ...verbsOf(name)])
      expect(await run(name, [...(verb === '' ? [] : [verb]), '--version'])).toEqual(expected)
  })

  it.each(commands)('%s %s says what --config takes in its help', async (name, verb) => {
    const { stdout } = await run(name, [...(verb === '' ? [] : [verb]), '--help'])
    const option = /^ +--config .*$/m.exec(stdout)?.[0]
    if (option !== undefined) expect(option).toMatch(/--config FILE\|ENV .*ENV for variables (TAP_|TARGET_)?FEEDBACK_…/)
  })

  it.each(withVerbs)('%s suggests the verb that was probably meant', async (name) => {
    for (const verb of verbsOf(name)) {
      const typo = `${verb.slice(0, -2)}${verb.at(-1)}${verb.at(-2)}`
      if (!verbsOf(name).includes(typo)) expect((await run(name, [typo])).stderr).toContain(` Did you mean ${verb}?`)
    }
    expect((await run(name, ['xyzzy'])).stderr).not.toContain('mean')
  })
})

it('the Singer programs alone exit with a status after a signal', () => {
  expect(programNames.filter((name) => programs[name].exitsOnSignal)).toEqual(['tap-feedback', 'target-feedback'])
})

describe('a built program', () => {
  /** Prints on stderr, as the process ends, which of these packages were loaded. */
  const reporter = writeTempFile(
    `process.on('exit', () => {
      const paths = Object.keys(require.cache)
      const loaded = ['@duckdb', 'axios', 'io-ts'].filter((name) =>
        paths.some((path) => path.includes('node_modules/' + name + '/')))
      process.stderr.write('loaded: ' + loaded.join(' '))
    })`,
    'cjs',
  )
  it.each([
    ['source-feedback', ['spec'], 'loaded: io-ts'],
    ['destination-feedback', ['spec'], 'loaded: io-ts'],
    ['source-feedback', ['--help'], 'loaded: io-ts'],
    ['feedback', ['query', '--help'], 'loaded: io-ts'],
  ] as const)('%s %j loads DuckDB and the HTTP client only if it needs them (%s)', async (name, args, expected) => {
    const { status, stderr } = await runBuiltProgram(name, args, { env: { NODE_OPTIONS: `--require=${reporter}` } })
    expect([status, stderr]).toEqual([0, expected])
  })
})
