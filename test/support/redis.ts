import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { type AddressInfo, createServer } from 'node:net'
import { onTestFinished } from 'vitest'

/** The reason why there is no Redis for tests; undefined if there is one. */
export const missingRedis: string | undefined =
  spawnSync('redis-server', ['--version']).status === 0 ? undefined : 'redis-server is not installed'

export const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer()
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })

/** A real redis-server that stores nothing on disk and is stopped when the test ends. */
export const startRedis = async (port?: number) => {
  const at = port ?? (await freePort())
  const server: ChildProcess = spawn(
    'redis-server',
    ['--port', String(at), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--requirepass', 'r3dis-pass'],
    { stdio: ['ignore', 'pipe', 'ignore'] },
  )
  const stop = () =>
    new Promise<void>((resolve) => {
      if (server.exitCode !== null || server.signalCode !== null) return resolve()
      server.once('exit', () => resolve())
      server.kill('SIGKILL')
    })
  onTestFinished(stop)
  await new Promise<void>((resolve, reject) => {
    server.once('exit', () => reject(new Error('redis-server ended')))
    server.stdout?.on('data', (text: Buffer) => {
      if (text.toString().includes('Ready to accept connections')) resolve()
    })
  })
  return { port: at, url: `redis://:r3dis-pass@127.0.0.1:${at}`, stop }
}
