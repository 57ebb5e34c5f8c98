import { createRedactor } from '../redact'
import type { CommandIo } from './command'
import { createLineEditor } from './line-editor'
import { createProgressPrinter } from './progress'
import type { StdoutWriter } from './stdout'
import { createTerminalWriter, showsColors } from './terminal'

/** The interface of a command to its process. `stop` is aborted when the command should end. */
export const createProcessIo = (host: NodeJS.Process, stdout: StdoutWriter, stop: AbortSignal): CommandIo => {
  let redactText = createRedactor([])
  const secrets: string[] = []
  host.stderr.on('error', () => undefined)
  const drawOnTerminal = host.stderr.isTTY === true ? createTerminalWriter() : undefined
  const drawProgress = drawOnTerminal ?? ((text: string): unknown => host.stderr.write(text))
  const progress = createProgressPrinter({
    columns: () => (host.stderr.isTTY === true ? host.stderr.columns || 80 : undefined),
    write: (text) => void drawProgress(redactText(text)),
    now: Date.now,
  })
  setInterval(progress.repeat, 500).unref()
  return {
    env: host.env,
    pid: host.pid,
    stdin: host.stdin,
    print: (text) => {
      progress.clear()
      return stdout.write(text)
    },
    printWarning: (line) => {
      progress.clear()
      host.stderr.write(`${redactText(line)}\n`)
    },
    printProgress: progress.print,
    isInteractive: host.stdin.isTTY === true && host.stderr.isTTY === true,
    printsOnTerminal: host.stdout.isTTY === true,
    hasColors: showsColors(host),
    setEcho: (on) => void host.stdin.setRawMode?.(!on),
    editLines: () => createLineEditor(host.stdin, host.stdout, stdout.flush),
    addSecrets: (more) => {
      secrets.push(...more)
      redactText = createRedactor(secrets)
    },
    redactText: (text) => redactText(text),
    stop,
  }
}
