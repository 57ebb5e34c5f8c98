import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Writable } from 'node:stream'
import { newTempPath } from '../support/files'
import { containerEnvironment, containerScript, type Verb } from './model/containers'
import { toExitStatus } from './model/outcome'

/** A connector: what its image calls AIRBYTE_ENTRYPOINT, and its config. */
export type Connector = {
  readonly entrypoint: string
  readonly config: object
  readonly env?: Readonly<Record<string, string>>
}

export type ContainerOptions = {
  readonly verb: Verb
  readonly connector: Connector
  /** Files of the working directory besides the config. */
  readonly files?: Readonly<Record<string, unknown>>
  readonly job?: { readonly id: number; readonly attempt: number }
  /** Runs it as process 1 of its own process namespace, which requires permission. */
  readonly isProcess1?: boolean
}

export type Container = {
  /** undefined where the command reads nothing. */
  readonly stdin: Writable | undefined
  readonly lines: AsyncIterable<string>
  readonly stderr: () => string
  readonly folder: string
  /** Resolves with the status in the exit file once process 1 has ended. */
  readonly ended: Promise<number>
  /** Closes the platform's end of stdout and writes the file TERMINATED. */
  readonly terminate: () => void
  /** Deletes the pod with grace 0: SIGKILL to every process in it. */
  readonly kill: () => void
  /** Sends SIGTERM to process 1, as an eviction does. */
  readonly evict: () => void
  /** Ends the platform's ends of the pipes, as where its own process dies. */
  readonly disconnect: () => void
}

/** The poll of the marker, far shorter than the platform's 10 s. */
const pollSeconds = 0.2

const putFiles = (folder: string, { verb, connector, files = {} }: ContainerOptions): void => {
  mkdirSync(folder)
  const config = verb === 'read' || verb === 'write' ? 'connectorConfig.json' : 'connectionConfiguration.json'
  const all = verb === 'spec' ? files : { [config]: connector.config, ...files }
  for (const [name, value] of Object.entries(all)) writeFileSync(join(folder, name), JSON.stringify(value))
}

/** Starts the platform's script around a connector, in a folder that acts as the container's. */
export const startContainer = (options: ContainerOptions): Container => {
  const { verb, connector, files = {}, job = { id: 1, attempt: 1 }, isProcess1 = false } = options
  const folder = newTempPath(verb)
  putFiles(folder, options)
  const isPiped = verb === 'read' || verb === 'write'
  if (isPiped) execFileSync('mkfifo', ['stderr', 'stdout', 'stdin'], { cwd: folder })
  const script = containerScript(verb, { folder, hasState: 'inputState.json' in files, pollSeconds })
  const shell = isProcess1 ? ['unshare', '-p', '-f', 'sh', '-c', script] : ['sh', '-c', script]
  const pod = spawn(shell[0] ?? 'sh', shell.slice(1), {
    detached: true,
    stdio: 'ignore',
    env: { ...process.env, ...containerEnvironment(connector.entrypoint, job), ...connector.env },
  })
  const kill = (): void => {
    try {
      process.kill(-(pod.pid ?? 0), 'SIGKILL')
    } catch {
      // Nothing of it is left.
    }
  }
  const readPipe = (name: string) => {
    const reader = isPiped ? spawn('cat', [name], { cwd: folder, stdio: ['ignore', 'pipe', 'ignore'] }) : undefined
    return { output: reader?.stdout, close: () => reader?.kill('SIGKILL') }
  }
  const [errors, output] = [readPipe('stderr'), readPipe('stdout')]
  const writer =
    verb === 'write'
      ? spawn('sh', ['-c', 'exec cat > stdin'], { cwd: folder, stdio: ['pipe', 'ignore', 'ignore'] })
      : undefined
  writer?.stdin.on('error', () => undefined)
  let stderr = ''
  errors.output?.on('data', (chunk: Buffer) => {
    stderr += chunk.toString()
  })
  const stderrIsRead = errors.output === undefined ? undefined : once(errors.output, 'close')
  const readExitFile = (): number => {
    const path = join(folder, 'exitCode.txt')
    return toExitStatus(existsSync(path) ? readFileSync(path, 'utf8') : undefined)
  }
  return {
    stdin: writer?.stdin,
    lines: output.output === undefined ? linesOfFile(join(folder, 'jobOutput.json'), pod) : toLines(output.output),
    stderr: () => stderr,
    folder,
    ended: once(pod, 'exit').then(async () => {
      // A container ends with process 1.
      kill()
      await stderrIsRead
      return readExitFile()
    }),
    terminate: () => {
      writeFileSync(join(folder, 'TERMINATED'), '')
      output.close()
    },
    kill,
    evict: () => {
      const children = readFileSync(`/proc/${pod.pid}/task/${pod.pid}/children`, 'utf8')
      process.kill(isProcess1 ? Number.parseInt(children, 10) : (pod.pid ?? 0), 'SIGTERM')
    },
    disconnect: () => {
      errors.close()
      output.close()
      writer?.kill('SIGKILL')
    },
  }
}

async function* toLines(output: NodeJS.ReadableStream): AsyncIterable<string> {
  yield* createInterface({ input: output, crlfDelay: Number.POSITIVE_INFINITY })
}

/** The output of check, discover and spec is read only once the exit file is there. */
async function* linesOfFile(path: string, pod: NodeJS.EventEmitter): AsyncIterable<string> {
  await once(pod, 'exit')
  yield* readFileSync(path, 'utf8').split('\n').slice(0, -1)
}

/** This machine lets a test create a process 1. */
export const canBeProcess1 = (): boolean => {
  try {
    execFileSync('unshare', ['-p', '-f', 'true'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
