import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { chmodSync, chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../../support/redis'

export type Postgres = {
  /** What clients of PostgreSQL take from their environment. */
  readonly env: Readonly<Record<string, string>>
  /** Runs SQL; returns its rows as JSON texts, one a line, where each is one value. */
  readonly ask: (sql: string) => string
  readonly stop: () => Promise<void>
}

const password = 'p0stgres-pass'
const bin = (program: string) => join(process.env.PG_BIN ?? '/usr/lib/postgresql/15/bin', program)

/** PostgreSQL refuses to run as root; then the user nobody runs it. */
const unprivileged = (): { readonly uid: number; readonly gid: number } | undefined => {
  if (process.getuid?.() !== 0) return undefined
  const id = (flag: string) => Number(spawnSync('id', [flag, 'nobody']).stdout.toString())
  return { uid: id('-u'), gid: id('-g') }
}

/** A real PostgreSQL on a free port of this machine, with its data in a temporary folder that `stop` removes. */
export const startPostgres = async (): Promise<Postgres> => {
  const user = unprivileged()
  const folder = mkdtempSync(join(tmpdir(), 'feedback-postgres-'))
  const passwordFile = join(folder, 'password')
  writeFileSync(passwordFile, password)
  chmodSync(folder, 0o700)
  if (user !== undefined) for (const path of [folder, passwordFile]) chownSync(path, user.uid, user.gid)
  const how = { cwd: folder, ...user }
  const data = join(folder, 'data')
  const login = ['-U', 'feedback', '-A', 'scram-sha-256', `--pwfile=${passwordFile}`]
  const made = spawnSync(bin('initdb'), ['-D', data, ...login, '--no-sync', '-E', 'UTF8', '--locale=C'], how)
  if (made.status !== 0) throw new Error(`initdb: ${made.stderr}`)
  const port = await freePort()
  // Its sessions are far from UTC, so that a time that loses its zone shows.
  const settings = [
    `unix_socket_directories=${folder}`,
    'listen_addresses=127.0.0.1',
    'fsync=off',
    // A long statement of an audit takes longer to compile than to run over a test's few rows.
    'jit=off',
    'TimeZone=Asia/Kolkata',
  ]
  const args = ['-D', data, '-p', String(port), ...settings.flatMap((setting) => ['-c', setting])]
  const server: ChildProcess = spawn(bin('postgres'), args, { ...how, stdio: ['ignore', 'ignore', 'pipe'] })
  await new Promise<void>((resolve, reject) => {
    let log = ''
    server.once('exit', () => reject(new Error(`postgres ended: ${log}`)))
    server.stderr?.on('data', (text: Buffer) => {
      log = (log + text.toString()).slice(-4000)
      if (log.includes('ready to accept connections')) resolve()
    })
  })
  const env = {
    PGHOST: '127.0.0.1',
    PGPORT: String(port),
    PGUSER: 'feedback',
    PGPASSWORD: password,
    PGDATABASE: 'postgres',
  }
  const ask = (sql: string): string => {
    const options = ['--no-psqlrc', '--quiet', '--tuples-only', '--no-align', '-v', 'ON_ERROR_STOP=1']
    const { status, stdout, stderr } = spawnSync(bin('psql'), options, {
      env: { ...process.env, ...env },
      input: sql,
      maxBuffer: 1 << 28,
    })
    if (status !== 0) throw new Error(`psql: ${stderr}`)
    return stdout.toString()
  }
  const stop = () =>
    new Promise<void>((resolve) => {
      const end = () => {
        rmSync(folder, { recursive: true, force: true })
        resolve()
      }
      if (server.exitCode !== null || server.signalCode !== null) return end()
      server.removeAllListeners('exit')
      server.once('exit', end)
      server.kill('SIGINT')
    })
  return { env, ask, stop }
}
