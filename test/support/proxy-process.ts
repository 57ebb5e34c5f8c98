import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { onTestFinished } from 'vitest'

/** The settings of `proxy.mjs`. */
export type ProxySettings = {
  readonly upstream?: number
  readonly answer?: string
  readonly silent?: boolean
  readonly user?: string
  readonly key?: string
  readonly cert?: string
}

type SeenByProxy = {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string | undefined>>
}

/** A proxy in a separate process, until the test ends. `listSeen`: the requests that it has received so far. */
export const startProxyProcess = async (settings: ProxySettings) => {
  const child = spawn(process.execPath, [join(__dirname, 'proxy.mjs'), JSON.stringify(settings)], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const lines = createInterface(child.stdout)
  const [port] = await once(lines, 'line')
  const seen: SeenByProxy[] = []
  lines.on('line', (line) => line === '' || seen.push(JSON.parse(line)))
  const listSeen = async (): Promise<ReadonlyArray<SeenByProxy>> => {
    const isUpToDate = new Promise<void>((resolve) => {
      lines.on('line', (line) => line === '' && resolve())
    })
    child.stdin.write('\n')
    await isUpToDate
    return seen
  }
  return { address: `127.0.0.1:${port}`, listSeen }
}
