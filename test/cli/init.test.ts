import { spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { joinText } from '../../connector/cdk/lines'
import type { CommandIo } from '../../connector/cdk/program/command'
import { runCommandLine } from '../../connector/cdk/program/run-command'
import { programs } from '../../connector/cli/programs'
import type { Sandbox } from '../../connector/sandbox/start'
import { createTestIo } from '../support/command-io'
import { programPath } from '../support/program'
import { applicationCredentials, startSmallSandbox } from '../support/sandbox'

const hasScript = spawnSync('script', ['--version']).status === 0

type Given = {
  readonly env?: CommandIo['env']
  readonly keys?: Iterable<string>
  readonly terminal?: boolean
  readonly colors?: boolean
  readonly stop?: AbortSignal
}

/** Runs a verb; `keys` is what comes on stdin, piece by piece. */
const run = async (
  args: ReadonlyArray<string>,
  { env = {}, keys = [], terminal = false, colors = false, stop = new AbortController().signal }: Given = {},
) => {
  const [out, err, echo]: [string[], string[], boolean[]] = [[], [], []]
  const stdin = async function* () {
    for (const text of keys) yield new Uint8Array(Buffer.from(text))
  }
  const io = createTestIo(stdin(), async (text) => void out.push(joinText(text)), {
    env,
    isInteractive: terminal,
    hasColors: colors,
    stop,
    setEcho: (on) => {
      echo.push(on)
      if (!on) err.push('(echo off)')
    },
    printWarning: (line) => err.push(line),
  })
  const status = await runCommandLine('feedback', programs.feedback, io, args, new Promise(() => undefined))
  return { status, stdout: out.join(''), stderr: err.join('\n'), echo }
}

const newFile = (name = 'config.json') => join(mkdtempSync(join(tmpdir(), 'init-')), name)
const readConfig = (path: string) => JSON.parse(readFileSync(path, 'utf8'))
const service = ['--base-url', 'https://feedback.example.com', '--start-date', '2024-01-31']

describe('feedback init', () => {
  it('writes a config without a secret, which check takes with the variable', async () => {
    const { url, accessToken } = await startSmallSandbox()
    const path = newFile()
    const args = ['--out', path, '--base-url', url, '--start-date', '2024-01-31']
    const { status, stdout } = await run(['init', ...args])
    expect(status).toBe(0)
    expect(stdout).toContain('FEEDBACK_CREDENTIALS_ACCESS_TOKEN')
    expect(readConfig(path)).toEqual({
      base_url: url,
      credentials: { auth_type: 'access_token' },
      start_date: '2024-01-31',
    })
    const next = /^ {2}feedback (check .*)$/m.exec(stdout)?.[1]?.split(' ') ?? []
    const env = { FEEDBACK_CREDENTIALS_ACCESS_TOKEN: accessToken }
    expect(await run(next, { env })).toMatchObject({ status: 0, stdout: expect.stringContaining('Everything works.') })
    expect(await run(next)).toMatchObject({ status: 78, stdout: expect.stringContaining('access_token is missing') })
  })

  it('writes a config with an id alone, which check takes with the secret in a variable', async () => {
    const { url, applicationId, applicationSecret } = await startSmallSandbox()
    const path = newFile()
    const application = ['--auth', 'application', '--application-id', applicationId]
    const args = ['--out', path, '--base-url', url, '--start-date', '2024-01-31', ...application]
    const { stdout } = await run(['init', ...args])
    expect(readConfig(path).credentials).toEqual({ auth_type: 'application', application_id: applicationId })
    const next = /^ {2}feedback (check .*)$/m.exec(stdout)?.[1]?.split(' ') ?? []
    const env = { FEEDBACK_CREDENTIALS_APPLICATION_SECRET: applicationSecret }
    expect(await run(next, { env })).toMatchObject({ status: 0, stdout: expect.stringContaining('Everything works.') })
  })

  it.each<[string, ReadonlyArray<string>, Given]>([
    ['a file', ['--secret-file', 'TOKEN'], {}],
    ['stdin', ['--secret-file', '-'], { keys: ['S3C', 'R3T\n'] }],
    ['a variable', ['--secret-in', 'file'], { env: { FEEDBACK_CREDENTIALS_ACCESS_TOKEN: 'S3CR3T' } }],
  ])('writes a token from %s into a file of mode 600, and says it nowhere', async (_, args, given) => {
    const path = newFile('deeper/config.json')
    const token = newFile('token.txt')
    writeFileSync(token, ' S3CR3T\n')
    const more = args.map((arg) => (arg === 'TOKEN' ? token : arg))
    const { status, stdout, stderr } = await run(['init', '--out', path, ...service, ...more], given)
    expect(status, stderr).toBe(0)
    expect(readConfig(path).credentials).toEqual({ auth_type: 'access_token', access_token: 'S3CR3T' })
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(stdout + stderr).not.toContain('S3CR3T')
  })

  it('asks for what is missing on a terminal, again where an answer is wrong, and hides the token', async () => {
    const path = newFile()
    const { status, stderr, echo } = await run(['init', '--out', path], {
      terminal: true,
      keys: [
        'feedback\n',
        'http://feedback.example.com\nhttps://feedback.example.com\n',
        'last year\n2024-02-30\n2024-01-31\naccess',
        '_token\nfile\n',
        'wrong\u0015S3C\u001b[D',
        'X\u007f\u001b[3~R\u00093T\r',
      ],
    })
    expect(status, stderr).toBe(0)
    expect(stderr).toMatch(/base_url[\s\S]*https[\s\S]*start_date/)
    expect(stderr).not.toContain('S3C')
    expect(stderr).toMatch(/\(echo off\)\nThe access token; it is not shown:$/)
    expect(echo.filter((on) => !on)).toHaveLength(1)
    expect(echo.at(-1)).toBe(true)
    expect(readConfig(path)).toEqual({
      base_url: 'https://feedback.example.com',
      credentials: { auth_type: 'access_token', access_token: 'S3CR3T' },
      start_date: '2024-01-31',
    })
  })

  it('shows its defaults, and takes them for Enter', async () => {
    const path = newFile()
    const { status, stdout, stderr } = await run(['init', '--out', path], {
      terminal: true,
      keys: ['\nhttps://feedback.example.com\n\n2024-01-31\n\n\n'],
    })
    expect(status, stderr).toBe(0)
    expect(stderr).toMatch(
      /base_url\):\n.*base_url[\s\S]*start_date\):\n.*start_date[\s\S]*\(auth\) \[access_token\]:\n.* \[env\]:$/,
    )
    expect(stdout).toContain('set the variable FEEDBACK_CREDENTIALS_ACCESS_TOKEN')
    expect(readConfig(path)).toEqual({
      base_url: 'https://feedback.example.com',
      credentials: { auth_type: 'access_token' },
      start_date: '2024-01-31',
    })
  })

  it.each(['\u0003', '\u0004', 'stop'])(
    'shows again what is typed where the question for the secret ends by %j',
    async (end) => {
      const path = newFile()
      const stop = new AbortController()
      const keys = function* () {
        yield 'file\n'
        if (end === 'stop') stop.abort()
        yield `S3C${end}`
      }
      const { status, stderr, echo } = await run(['init', '--out', path, ...service, '--auth', 'access_token'], {
        terminal: true,
        keys: keys(),
        stop: stop.signal,
      })
      expect([status, stderr]).toEqual([2, expect.stringContaining('Nothing was written.')])
      expect([echo.includes(false), echo.at(-1), existsSync(path)]).toEqual([true, true, false])
    },
  )

  it.skipIf(!hasScript).each([
    ['Enter', '\r', 0],
    ['Ctrl-C', '\u0003', 2],
  ])('does not show the token on a terminal, which is as before after %s', async (_, end, status) => {
    const path = newFile()
    const program = `'${process.execPath}' '${programPath('feedback')}'`
    const command = `${program} init --out '${path}' ${service.join(' ')}; echo "status $?"; stty -a`
    const terminal = spawn('script', ['-qec', command, '/dev/null'], { stdio: ['pipe', 'pipe', 'ignore'] })
    onTestFinished(() => void terminal.kill('SIGKILL'))
    const answers: Array<readonly [RegExp, string]> = [
      [/\[access_token\]:/, '\r'],
      [/\[env\]:/, 'file\r'],
      [/not shown:/, `S3CR3T${end}`],
    ]
    let shown = ''
    terminal.stdout.on('data', (chunk: Buffer) => {
      shown += chunk
      const [question, answer] = answers[0] ?? []
      if (question === undefined || !question.test(shown)) return
      answers.shift()
      terminal.stdin.write(answer ?? '')
    })
    await new Promise((resolve) => terminal.on('close', resolve))
    expect(shown).toContain(`status ${status}`)
    expect(shown).not.toContain('S3C')
    expect(shown).toMatch(/ icanon [\s\S]* echo /)
    expect(existsSync(path) && readConfig(path).credentials.access_token).toBe(status === 0 && 'S3CR3T')
  })

  it.each([
    [['--token-url', 'https://x.example/token'], { token_url: 'https://x.example/token' }],
    [[], {}],
  ])('writes the credentials of an application, with %j', async (args, expected) => {
    const path = newFile()
    const more = ['--auth', 'application', '--application-id', 'app-1', ...args]
    const env = { FEEDBACK_CREDENTIALS_APPLICATION_SECRET: 'S3CR3T' }
    await run(['init', '--out', path, ...service, ...more, '--secret-in', 'file'], { env })
    expect(readConfig(path).credentials).toEqual({
      auth_type: 'application',
      application_id: 'app-1',
      application_secret: 'S3CR3T',
      ...expected,
    })
  })

  it('replaces a file only with --force, which then has the mode 600 too', async () => {
    const path = newFile()
    writeFileSync(path, 'mine', { mode: 0o644 })
    const refused = await run(['init', '--out', path, ...service])
    expect([refused.status, refused.stderr, readFileSync(path, 'utf8')]).toEqual([
      78,
      expect.stringContaining('--force'),
      'mine',
    ])
    expect((await run(['init', '--out', path, ...service, '--force'])).status).toBe(0)
    expect([readConfig(path).start_date, statSync(path).mode & 0o777]).toEqual(['2024-01-31', 0o600])
  })

  it.each([
    [[], '--base-url is missing'],
    [['--base-url', 'https://x.example'], '--start-date is missing'],
    [['--base-url', 'x', '--start-date', '2024-01-31'], '--base-url is wrong'],
    [['--base-url', 'http://x.example', '--start-date', '2024-01-31'], 'base_url'],
    [['--base-url', 'https://x.example', '--start-date', '2023-02-29'], '--start-date is wrong'],
    [[...service, '--auth', 'password'], '--auth is wrong'],
    [[...service, '--secret-in', 'file'], 'FEEDBACK_CREDENTIALS_ACCESS_TOKEN'],
    [[...service, '--secret-in', 'vault'], '--secret-in'],
    [[...service, '--auth', 'application'], '--application-id is missing'],
  ])('%j without a terminal: %s', async (args, expected) => {
    const path = newFile()
    const { status, stderr } = await run(['init', '--out', path, ...args])
    expect([status, stderr]).toEqual([2, expect.stringContaining(expected)])
    expect(() => statSync(path)).toThrow()
  })

  it.each([['\u0003'], ['https://x.example\n']])('writes nothing where the answers end early: %j', async (text) => {
    const path = newFile()
    const { status, stderr } = await run(['init', '--out', path], { terminal: true, keys: [text] })
    expect([status, stderr]).toEqual([2, expect.stringContaining('Nothing was written.')])
    expect(() => statSync(path)).toThrow()
  })
})

describe('feedback check', () => {
  const check = async (
    { url, accessToken }: Pick<Sandbox, 'url' | 'accessToken'>,
    args: ReadonlyArray<string> = [],
    more: object = {},
    given: Given = {},
  ) => {
    const path = newFile()
    const credentials = { auth_type: 'access_token', access_token: accessToken }
    writeFileSync(path, JSON.stringify({ base_url: url, credentials, start_date: '2020-01-01', ...more }))
    return run(['check', '--config', path, ...args], given)
  }

  it('says what works, stream by stream, and why one is not asked for', async () => {
    const { status, stdout } = await check(await startSmallSandbox())
    expect(status).toBe(0)
    for (const line of [/^configuration +ok$/m, /^service +ok$/m, /^token +ok$/m, /^reviews +ok$/m, /^sources +ok$/m])
      expect(stdout).toMatch(line)
    expect(stdout).toMatch(/^comments +skipped +the config names no entities, so there is nothing to read$/m)
    expect(stdout).toMatch(/\nEverything works\.\nNext:\n {2}feedback sync --config \S+ --db reviews\.duckdb\n$/)
  })

  it('colors the results on a terminal, and nothing else changes', async () => {
    const sandbox = await startSmallSandbox({ granted: new Map([['one', ['exportReviews']]]) })
    const one = { ...sandbox, accessToken: 'one' }
    const [plain, colored] = [await check(one), await check(one, [], {}, { colors: true })]
    const shown = colored.stdout.replaceAll('\u001b', '^')
    expect(plain.stdout).not.toContain('\u001b')
    expect(shown).toMatch(/^reviews +\^\[32mok *\^\[39m$/m)
    expect(shown).toMatch(/^deleted_reviews +\^\[31mFAILED *\^\[39m {2}\S/m)
    const stable = (text: string) =>
      text.replaceAll(/^(first sync|clock|requests).*\n/gm, '').replaceAll(/\S+\.json/g, '')
    expect(stable(shown.replaceAll(/\^\[\d+m/g, ''))).toBe(stable(plain.stdout))
    expect((await check(one, ['--json'], {}, { colors: true })).stdout).not.toContain('\u001b')
  })

  it('names the streams that a token may not read, and no others', async () => {
    const sandbox = await startSmallSandbox({ granted: new Map([['one', ['exportReviews']]]) })
    const one = { ...sandbox, accessToken: 'one' }
    const { status, stdout } = await check(one, ['--json'])
    const { ok, failure, checks } = JSON.parse(stdout)
    expect([status, ok, failure.type]).toEqual([78, false, 'config_error'])
    const failed = checks.filter((each: { status: string }) => each.status === 'failed')
    expect(failed).toEqual([
      {
        check: 'stream',
        stream: 'deleted_reviews',
        status: 'failed',
        failure: { type: 'config_error', message: expect.stringContaining('permission') },
      },
    ])
    expect(await check(one, ['--select', 'reviews,locations'])).toMatchObject({ status: 0 })
    expect((await check(one)).stdout).toMatch(/^deleted_reviews +FAILED +.*permission.*\n[\s\S]*1 of \d+ failed\.\n$/m)
  })

  it('asks for the streams of entities where the config names one', async () => {
    const sandbox = await startSmallSandbox({ denied: ['retrieveReviews'] })
    const [location] = (await sandbox.truth()).locations ?? []
    const { stdout } = await check(sandbox, ['--json'], { entities: { location_ids: [String(location ?? '1')] } })
    const checks: ReadonlyArray<{ stream?: string; status: string }> = JSON.parse(stdout).checks
    const statusOf = (name: string) => checks.find(({ stream }) => stream === name)?.status
    for (const name of ['comments', 'transparency_reviews', 'entity_ratings'])
      expect([name, statusOf(name)]).not.toEqual([name, 'skipped'])
  })

  it.each([
    ['a token that is refused', 'token', 78],
    ['an address where nothing answers', 'service', 78],
    ['a config that is wrong', 'configuration', 78],
  ] as const)('ends with %s, in words and as JSON', async (_, part, status) => {
    const sandbox = await startSmallSandbox()
    const broken = part === 'token' ? { ...sandbox, accessToken: 'S3CR3T-other' } : sandbox
    const more = part === 'configuration' ? { start_date: 'yesterday' } : {}
    if (part === 'service') await sandbox.close()
    const words = await check(broken, [], more)
    expect([words.status, words.stdout]).toEqual([status, expect.stringMatching(new RegExp(`^${part} +FAILED`, 'm'))])
    const json = await check(broken, ['--json'], more)
    const { checks } = JSON.parse(json.stdout)
    expect([json.status, checks.at(-1)]).toMatchObject([status, { check: part, status: 'failed' }])
    expect(words.stdout + json.stdout).not.toContain('S3CR3T')
  })

  it.each([
    ['is not asked, where no token is issued', 'right', 'skipped', 'token'],
    ['is what fails, where nothing answers', 'closed', 'FAILED', 'service'],
  ] as const)('says that the service %s', async (_, state, result, failing) => {
    const sandbox = await startSmallSandbox()
    const credentials = { ...applicationCredentials(sandbox), application_secret: 'S3CR3T-other' }
    if (state === 'closed') await sandbox.close()
    const { status, stdout } = await check(sandbox, [], { credentials })
    expect([status, stdout]).toEqual([78, expect.stringMatching(new RegExp(`^service +${result}`, 'm'))])
    expect(stdout).toMatch(new RegExp(`^${failing} +FAILED`, 'm'))
    expect(stdout).not.toContain('found out')
  })

  it('fails where start_date lies in the future', async () => {
    const { status, stdout, stderr } = await check(await startSmallSandbox(), [], { start_date: '2090-01-01' })
    expect([status, stderr]).toEqual([78, ''])
    expect(stdout).toMatch(/^configuration +FAILED +start_date \(2090-01-01.*future/m)
  })

  it('names a stream that does not exist', async () => {
    const { status, stdout } = await check(await startSmallSandbox(), ['--select', 'review'])
    expect([status, stdout]).toEqual([78, expect.stringContaining('--select names review')])
  })
})
