import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { writeTempFile } from '../../support/files'
import { type ReceivedRequest, sendJson, startServer } from '../../support/listen'
import { type ProgramName, startProgram } from '../../support/program'

const closing: Array<() => void> = []
afterAll(() => {
  for (const close of closing) close()
})

const settings = (base_url: string, more: object = {}) => ({
  base_url,
  credentials: { auth_type: 'access_token', access_token: 'not-for-anybody' },
  start_date: '2024-01-01T00:00:00Z',
  ...more,
})

/** A check that nobody ends: it has to give up by itself, as its message says. */
const checking = async (config: object, program: ProgramName = 'source-feedback') => {
  const running = startProgram(program, ['check', '--config', writeTempFile(config)])
  const { stdout, signal } = await running.ended
  expect(signal).toBe(null)
  const lines = stdout.trim().split('\n')
  expect(lines).toHaveLength(1)
  const { connectionStatus, trace } = JSON.parse(lines[0] ?? '')
  return String(connectionStatus?.message ?? trace?.error.message)
}

/** A port that takes connections and then says nothing. */
const silent = async (): Promise<number> => {
  const sockets: Socket[] = []
  const server = createServer((socket) => sockets.push(socket))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closing.push(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

/** A port where not even a connection is made: what a firewall that drops packets looks like. */
const blackHole = async (): Promise<number> => {
  const child: ChildProcess = spawn(process.execPath, [join(__dirname, 'deaf.mjs')], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  closing.push(() => child.kill('SIGKILL'))
  const [text] = await once(child.stdout as NonNullable<ChildProcess['stdout']>, 'data')
  const port = Number(String(text))
  const queued = Array.from({ length: 8 }, () => connect(port, '127.0.0.1').on('error', () => undefined))
  closing.push(() => {
    for (const socket of queued) socket.destroy()
  })
  return port
}

const serving = (reply: (seen: ReceivedRequest, response: ServerResponse) => void) =>
  startServer(reply, (close) => closing.push(close))
const empty = ({ body }: ReceivedRequest) => ({ reviews: [], filter: JSON.parse(body) })

const dripping = (response: ServerResponse): void => {
  response.writeHead(200, { 'Content-Type': 'application/json' })
  const timer = setInterval(() => response.write(' '), 300)
  response.on('close', () => clearInterval(timer))
}

describe.concurrent('check answers before a platform gives up if', () => {
  it('the port accepts connections and sends nothing', async ({ expect }) => {
    expect(await checking(settings(`http://127.0.0.1:${await blackHole()}`))).toMatch(/ECONNTIMEDOUT.*Check base_url/)
  })
  it('the server does not speak TLS', async ({ expect }) => {
    expect(await checking(settings(`https://127.0.0.1:${await silent()}`))).toMatch(/ECONNTIMEDOUT.*Check base_url/)
  })
  it('the service does not answer', async ({ expect }) => {
    expect(await checking(settings(`http://127.0.0.1:${await silent()}`))).toMatch(
      /no complete answer within 12 s.*did not answer completely in time \(ETIMEDOUT\)/,
    )
  })
  it('a response comes in byte by byte', async ({ expect }) => {
    const { url } = await serving((_, response) => dripping(response))
    expect(await checking(settings(url))).toMatch(
      /no complete answer within 12 s.*did not answer completely in time \(ETIMEDOUT\)/,
    )
  })
  it('the destination gets no answer', async ({ expect }) => {
    const { start_date: _, ...config } = settings(`http://127.0.0.1:${await silent()}`)
    expect(await checking(config, 'destination-feedback')).toMatch(/within 12 s.*did not answer|did not answer/)
  })
  it('the token exchange does not answer', async ({ expect }) => {
    const { url } = await serving((seen, response) =>
      seen.url === '/token' ? dripping(response) : sendJson(response, 200, empty(seen)),
    )
    const credentials = {
      auth_type: 'application',
      application_id: 'a',
      application_secret: 'b',
      token_url: `${url}/token`,
    }
    expect(await checking(settings(url, { credentials }))).toMatch(
      /no complete answer within 12 s.*credentials\.token_url .*did not answer/,
    )
  })
})
