import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'

type Fields = Readonly<Record<string, unknown>>
type Event = { readonly method: string; readonly params: Fields }

/** One page of a browser without a window, over the DevTools protocol. */
export type Tab = {
  readonly send: (method: string, params?: Fields) => Promise<Fields>
  /** Loads an address; settles once the page has loaded. */
  readonly open: (url: string) => Promise<void>
  readonly evaluate: (expression: string) => Promise<unknown>
  /** Everything the browser has told of the page so far. */
  readonly events: ReadonlyArray<Event>
}
export type Browser = { readonly tab: () => Promise<Tab>; readonly close: () => Promise<void> }

/** Whether Debian's chromium is here; without it the tests skip. */
export const hasChromium = (): boolean => {
  try {
    execFileSync('chromium', ['--version', '--no-sandbox'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

const flags =
  '--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync --disable-dev-shm-usage --hide-scrollbars --remote-debugging-pipe'

/** Starts Chromium with a profile of its own, talking through two pipes; no port is opened. */
export const startChromium = async (): Promise<Browser> => {
  const profile = mkdtempSync(join(tmpdir(), 'chromium-'))
  const child = spawn('chromium', [...flags.split(' '), `--user-data-dir=${profile}`, 'about:blank'], {
    stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
  })
  const link = connect(child)
  return {
    tab: async () => {
      const { targetId } = await link.send('Target.createTarget', { url: 'about:blank' })
      const { sessionId } = await link.send('Target.attachToTarget', { targetId, flatten: true })
      const session = String(sessionId)
      const send: Tab['send'] = (method, params) => link.send(method, params, session)
      for (const domain of ['Page', 'Runtime', 'Network', 'Log']) await send(`${domain}.enable`)
      return {
        send,
        open: async (url) => {
          const loaded = link.once('Page.loadEventFired', session)
          await send('Page.navigate', { url })
          await loaded
        },
        evaluate: async (expression) => {
          const { result, exceptionDetails } = await send('Runtime.evaluate', { expression, returnByValue: true })
          if (exceptionDetails !== undefined) throw new Error(JSON.stringify(exceptionDetails))
          return (result as Fields).value
        },
        events: link.eventsOf(session),
      }
    },
    close: async () => {
      const ended = new Promise((resolve) => child.once('exit', resolve))
      link.send('Browser.close').catch(() => undefined)
      await ended
      rmSync(profile, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

/** Messages are JSON texts, each ended by a zero byte. */
const connect = (child: ChildProcess) => {
  const [, , , input, output] = child.stdio as unknown as [null, null, null, Writable, Readable]
  const waiting = new Map<number, { resolve: (answer: Fields) => void; reject: (error: Error) => void }>()
  const events = new Map<string, Array<Event>>()
  const listeners = new Set<(session: string, event: Event) => void>()
  const eventsOf = (session: string): Array<Event> => {
    const found = events.get(session) ?? []
    events.set(session, found)
    return found
  }
  const receive = (text: string): void => {
    const { id, error, result, method, params, sessionId = '' } = JSON.parse(text)
    if (id === undefined) {
      eventsOf(sessionId).push({ method, params })
      for (const listener of listeners) listener(sessionId, { method, params })
      return
    }
    if (error === undefined) waiting.get(id)?.resolve(result)
    else waiting.get(id)?.reject(new Error(`${error.message}`))
    waiting.delete(id)
  }
  let rest = ''
  output.setEncoding('utf8').on('data', (chunk: string) => {
    const texts = (rest + chunk).split('\0')
    rest = texts.pop() ?? ''
    texts.forEach(receive)
  })
  child.once('exit', (status) => {
    for (const { reject } of waiting.values()) reject(new Error(`chromium has ended (${status})`))
  })
  input.on('error', () => undefined)
  let last = 0
  return {
    eventsOf,
    send: (method: string, params: Fields = {}, sessionId?: string): Promise<Fields> =>
      new Promise((resolve, reject) => {
        last += 1
        waiting.set(last, { resolve, reject })
        input.write(`${JSON.stringify({ id: last, method, params, sessionId })}\0`)
      }),
    once: (method: string, session: string): Promise<void> =>
      new Promise((resolve) => {
        const listener = (from: string, event: Event): void => {
          if (from !== session || event.method !== method) return
          listeners.delete(listener)
          resolve()
        }
        listeners.add(listener)
      }),
  }
}
