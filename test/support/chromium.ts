import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'

type Fields = Readonly<Record<string, unknown>>
type Event = { readonly method: string; readonly params: Fields }

/** One page of a headless browser, driven by the DevTools protocol. */
export type Tab = {
  readonly send: (method: string, params?: Fields) => Promise<Fields>
  /** Loads an address; resolves once the page has loaded. */
  readonly open: (url: string) => Promise<void>
  readonly evaluate: (expression: string) => Promise<unknown>
  /** All events of the page so far. */
  readonly events: ReadonlyArray<Event>
}
export type Browser = { readonly tab: () => Promise<Tab>; readonly close: () => Promise<void> }

/** The command `chromium` exists; the tests are skipped without it. */
export const hasChromium = (): boolean => {
  try {
    execFileSync('chromium', ['--version', '--no-sandbox'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

const flags =
  '--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking ' +
  '--disable-component-update --disable-sync --disable-dev-shm-usage --hide-scrollbars --remote-debugging-pipe'

/** Starts Chromium with a temporary profile. Messages go through two pipes, so no port is opened. */
export const startChromium = async (): Promise<Browser> => {
  const profile = mkdtempSync(join(tmpdir(), 'chromium-'))
  const child = spawn('chromium', [...flags.split(' '), `--user-data-dir=${profile}`, 'about:blank'], {
    stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
  })
  const connection = createConnection(child)
  return {
    tab: async () => {
      const { targetId } = await connection.send('Target.createTarget', { url: 'about:blank' })
      const { sessionId } = await connection.send('Target.attachToTarget', { targetId, flatten: true })
      const session = String(sessionId)
      const send: Tab['send'] = (method, params) => connection.send(method, params, session)
      for (const domain of ['Page', 'Runtime', 'Network', 'Log']) await send(`${domain}.enable`)
      return {
        send,
        open: async (url) => {
          const load = connection.once('Page.loadEventFired', session)
          await send('Page.navigate', { url })
          await load
        },
        evaluate: async (expression) => {
          const { result, exceptionDetails } = await send('Runtime.evaluate', { expression, returnByValue: true })
          if (exceptionDetails !== undefined) throw new Error(JSON.stringify(exceptionDetails))
          return (result as Fields).value
        },
        events: connection.eventsOf(session),
      }
    },
    close: async () => {
      const exit = new Promise((resolve) => child.once('exit', resolve))
      connection.send('Browser.close').catch(() => undefined)
      await exit
      rmSync(profile, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

/** Sends and receives messages; each is JSON text followed by a zero byte. */
const createConnection = (child: ChildProcess) => {
  const [, , , input, output] = child.stdio as unknown as [null, null, null, Writable, Readable]
  const pendingCalls = new Map<number, { resolve: (result: Fields) => void; reject: (error: Error) => void }>()
  const events = new Map<string, Array<Event>>()
  const listeners = new Set<(session: string, event: Event) => void>()
  const eventsOf = (session: string): Array<Event> => {
    const sessionEvents = events.get(session) ?? []
    events.set(session, sessionEvents)
    return sessionEvents
  }
  const receive = (text: string): void => {
    const { id, error, result, method, params, sessionId = '' } = JSON.parse(text)
    if (id === undefined) {
      eventsOf(sessionId).push({ method, params })
      for (const listener of listeners) listener(sessionId, { method, params })
      return
    }
    if (error === undefined) pendingCalls.get(id)?.resolve(result)
    else pendingCalls.get(id)?.reject(new Error(`${error.message}`))
    pendingCalls.delete(id)
  }
  let incomplete = ''
  output.setEncoding('utf8').on('data', (chunk: string) => {
    const texts = (incomplete + chunk).split('\0')
    incomplete = texts.pop() ?? ''
    texts.forEach(receive)
  })
  child.once('exit', (status) => {
    for (const { reject } of pendingCalls.values()) reject(new Error(`chromium has ended (${status})`))
  })
  input.on('error', () => undefined)
  let lastId = 0
  return {
    eventsOf,
    send: (method: string, params: Fields = {}, sessionId?: string): Promise<Fields> =>
      new Promise((resolve, reject) => {
        lastId += 1
        pendingCalls.set(lastId, { resolve, reject })
        input.write(`${JSON.stringify({ id: lastId, method, params, sessionId })}\0`)
      }),
    once: (method: string, session: string): Promise<void> =>
      new Promise((resolve) => {
        const listener = (eventSession: string, event: Event): void => {
          if (eventSession !== session || event.method !== method) return
          listeners.delete(listener)
          resolve()
        }
        listeners.add(listener)
      }),
  }
}
