import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Sandbox } from '../../../connector/sandbox/start'
import { destination } from '../../support/destination'
import { newTempPath, writeTempFile } from '../../support/files'
import { type ProgramName, programPath, runProgram, startProgram } from '../../support/program'
import { startTestSandbox } from '../../support/sandbox'

let sandbox: Sandbox
let config: string
let large: string
/** Pages with more bytes than may wait for a reader. */
let long: string
let catalog: string
beforeAll(async () => {
  sandbox = await startTestSandbox({ reviews: 7_000, until: Date.now() - 60_000 })
  const whole = {
    base_url: sandbox.url,
    credentials: { auth_type: 'access_token', access_token: sandbox.accessToken },
    start_date: '2010-01-01T00:00:00Z',
    page_size: 500,
  }
  large = writeTempFile(whole)
  // Small records, since a test has to read them all.
  const small = { ...whole, privacy: { drop: ['export.contents'] } }
  config = writeTempFile(small)
  long = writeTempFile({ ...small, page_size: 1000 })
  catalog = writeTempFile(
    (await runProgram('feedback', ['catalog', '--config', config, '--select', 'reviews,deleted_reviews'])).stdout,
  )
})
afterAll(() => sandbox.close())

const truth = async () => (await sandbox.truth()).reviews.map(({ id, modifiedTime }) => `${id} ${modifiedTime}`).sort()

const reading = (state: unknown, path = config) => [
  'read',
  '--config',
  path,
  '--catalog',
  catalog,
  '--state',
  writeTempFile(state),
]

it.concurrent.each(['SIGTERM', 'SIGINT', 'SIGKILL'] as const)(
  'after %s the last state is right and the next run reads the rest',
  async (signal) => {
    const held = destination()
    const running = startProgram('source-feedback', reading(held.state()))
    running.onOutput((bytes) => {
      if (bytes > 3_300_000) running.kill(signal)
    })
    const { stdout, signal: died } = await running.ended
    expect(died).toBe(signal)
    held.load(stdout)
    // A run that was asked to stop prints its state; a killed one printed it before.
    expect(held.state()).not.toEqual([])
    expect(held.alive().length).toBeLessThan(7_000)
    const next = await runProgram('source-feedback', reading(held.state()))
    expect(next.status, next.stderr).toBe(0)
    held.load(next.stdout)
    expect(held.alive()).toEqual(await truth())
  },
)

/**
 * Runs a command whose reader pauses after some bytes, until the buffers are full in the middle of a page, and asks it
 * to stop there.
 */
const stopWhileBlocked = (program: ProgramName, args: ReadonlyArray<string>, signal: NodeJS.Signals) =>
  new Promise<{ readonly stdout: string; readonly died: NodeJS.Signals | null; readonly status: number | null }>(
    (resolve) => {
      const child = spawn(process.execPath, [programPath(program), ...args], { stdio: ['ignore', 'pipe', 'ignore'] })
      const chunks: Buffer[] = []
      let count = 0
      child.stdout.on('data', (chunk: Buffer) => {
        const rests = count <= 300_000 && count + chunk.length > 300_000
        chunks.push(chunk)
        count += chunk.length
        if (!rests) return
        child.stdout.pause()
        setTimeout(() => {
          child.kill(signal)
          child.stdout.resume()
        }, 1000)
      })
      child.on('close', (status, died) => resolve({ stdout: Buffer.concat(chunks).toString(), died, status }))
    },
  )

it.concurrent('a read that is stopped in the middle of a page again and again loses nothing', async () => {
  const held = destination()
  for (let stops = 0; ; stops += 1) {
    const { stdout, died, status } = await stopWhileBlocked('source-feedback', reading(held.state(), long), 'SIGINT')
    held.load(stdout)
    if (died !== null) continue
    expect(status).toBe(0)
    expect(stops).toBeGreaterThan(1)
    break
  }
  expect(held.alive()).toEqual(await truth())
})

/** The reviews among RECORD lines up to the last STATE, and that state. */
const singerOutput = (stdout: string) => {
  const lines = stdout.split('\n').slice(0, -1)
  const last = lines.findLastIndex((line) => line.startsWith('{"type":"STATE"'))
  const ids = lines
    .slice(0, last)
    .flatMap((line) => (line.startsWith('{"type":"RECORD"') ? [/"id":(\d+)/.exec(line)?.[1] ?? ''] : []))
  return { ids, state: JSON.parse(lines[last] ?? '{}').value as unknown }
}

it.concurrent('a tap that is stopped in the middle of a page again and again loses nothing', async () => {
  const { streams } = JSON.parse((await runProgram('tap-feedback', ['--config', long, '--discover'])).stdout)
  const selected = streams
    .filter(({ tap_stream_id }: { readonly tap_stream_id: string }) => tap_stream_id === 'reviews')
    .map((stream: object) => ({ ...stream, metadata: [{ breadcrumb: [], metadata: { selected: true } }] }))
  const properties = writeTempFile({ streams: selected })
  const ids = new Set<string>()
  let state: unknown = {}
  for (let stops = 0; ; stops += 1) {
    const args = ['--config', long, '--catalog', properties, '--state', writeTempFile(state)]
    const { stdout, status } = await stopWhileBlocked('tap-feedback', args, 'SIGTERM')
    const said = singerOutput(stdout)
    for (const id of said.ids) ids.add(id)
    state = said.state
    // A tap does not die of the signal (main.ts).
    if (status === 143) continue
    expect(status).toBe(0)
    expect(stops).toBeGreaterThan(1)
    break
  }
  expect([...ids].sort()).toEqual((await sandbox.truth()).reviews.map(({ id }) => String(id)).sort())
})

it('a program ends silently when its reader goes away', async () => {
  const child = spawn(process.execPath, [programPath('source-feedback'), ...reading([])], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const errors: Buffer[] = []
  child.stderr.on('data', (chunk: Buffer) => errors.push(chunk))
  child.stdout.once('data', () => child.stdout.destroy())
  const status = await new Promise((resolve) => child.on('close', resolve))
  expect(status).toBe(1)
  expect(Buffer.concat(errors).toString()).toBe('')
})

/** How many requests there were once no more come. */
const stalled = async (before = sandbox.stats().exports, hasBegun = false): Promise<number> => {
  await sleep(1500)
  const now = sandbox.stats().exports
  return now === before && hasBegun ? now : stalled(now, hasBegun || now > before)
}

it('a program waits for a reader that reads nothing, sends no more requests, and can be stopped', async () => {
  const child = spawn(process.execPath, [programPath('source-feedback'), ...reading([])], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const closed = new Promise<NodeJS.Signals | null>((resolve) => child.on('exit', (_, signal) => resolve(signal)))
  expect(await stalled()).toBeGreaterThan(0)
  expect(child.exitCode).toBeNull()
  child.kill('SIGTERM')
  child.kill('SIGTERM')
  await sleep(100)
  child.kill('SIGTERM')
  expect(await closed).toBe('SIGTERM')
})

const canUnshare = spawnSync('unshare', ['--pid', '--fork', '--mount-proc', 'true']).status === 0

it.each([
  ['source-feedback', [], 'SIGTERM'],
  ['tap-feedback', [], 143],
  ...(canUnshare
    ? ([
        ['source-feedback', ['unshare', '--pid', '--fork', '--mount-proc'], 143],
        ['tap-feedback', ['unshare', '--pid', '--fork', '--mount-proc'], 143],
      ] as const)
    : []),
] as const)(
  '%s ends by one SIGTERM though its reader takes nothing, started by %j',
  async (program, launcher, ended) => {
    const args = program === 'tap-feedback' ? ['--config', long] : reading([], long)
    const [command = '', ...more] = [...launcher, process.execPath, programPath(program), ...args]
    const child = spawn(command, more, { stdio: ['ignore', 'pipe', 'ignore'] })
    const closed = new Promise<unknown>((resolve) => child.on('exit', (status, signal) => resolve(status ?? signal)))
    await stalled()
    const running = launcher.length === 0 ? child.pid : spawnSync('pgrep', ['-P', String(child.pid)]).stdout
    process.kill(Number(running), 'SIGTERM')
    expect(await closed).toBe(ended)
  },
)

it('a program continues when a paused reader reads again, and needs no more memory meanwhile', async () => {
  const earlier = sandbox.stats().exports
  const child = spawn(process.execPath, [programPath('source-feedback'), ...reading([])], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const closed = new Promise<number | null>((resolve) => child.on('close', (status) => resolve(status)))
  const megabytes = (): number =>
    Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1] ?? 0) / 1024
  await sleep(1000)
  const before = { asked: await stalled(earlier), memory: megabytes() }
  await sleep(3000)
  expect(child.exitCode).toBeNull()
  expect(sandbox.stats().exports).toBe(before.asked)
  expect(megabytes()).toBeLessThan(before.memory + 20)
  const chunks: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
  expect(await closed).toBe(0)
  const held = destination()
  held.load(Buffer.concat(chunks).toString())
  expect(held.alive()).toEqual(await truth())
})

it('a run reports that the snapshot cannot grow, and the next run continues from there', async () => {
  const db = newTempPath('duckdb')
  const args = ['sync', '--config', large, '--db', db, '--select', 'reviews,deleted_reviews']
  const shell = `trap '' XFSZ; ulimit -f 700; exec "$0" "$@"`
  const limited = spawn('bash', ['-c', shell, process.execPath, programPath('feedback'), ...args], {
    stdio: ['ignore', 'ignore', 'pipe'],
    cwd: mkdtempSync(join(tmpdir(), 'full-')),
  })
  const errors: Buffer[] = []
  limited.stderr.on('data', (chunk: Buffer) => errors.push(chunk))
  const status = await new Promise((resolve) => limited.on('close', resolve))
  expect(status).toBe(75)
  expect(Buffer.concat(errors).toString()).toMatch(/cannot grow: the disk is full.*Make room and run again/)

  const next = await runProgram('feedback', args)
  expect(next.status, next.stderr).toBe(0)
  const { status: good, stdout } = await runProgram('feedback', ['verify', '--db', db])
  expect(good, stdout).toBe(0)
  const count = await runProgram('feedback', [
    'query',
    '--db',
    db,
    '--json',
    'SELECT count(*) AS n, count(DISTINCT id) AS d FROM reviews',
  ])
  expect(JSON.parse(count.stdout)).toEqual({ n: 7_000, d: 7_000 })
})
