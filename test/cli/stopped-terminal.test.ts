import { spawn, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { expect, it, onTestFinished } from 'vitest'
import { newTempPath, writeTempFile } from '../support/files'
import { programPath } from '../support/program'
import { sandboxConfig, startSmallSandbox } from '../support/sandbox'

const hasScript = spawnSync('script', ['--version']).status === 0

it.skipIf(!hasScript)(
  'a terminal that is stopped by Ctrl-S does not hold up the run at its progress line',
  async () => {
    const sandbox = await startSmallSandbox({ reviews: 400, latency: { minMs: 60, maxMs: 60 } })
    const config = writeTempFile({ ...sandboxConfig(sandbox), page_size: 20 })
    const output = newTempPath('txt')
    const command =
      `'${process.execPath}' '${programPath('feedback')}' sync --config ` +
      `'${config}' --db '${newTempPath('duckdb')}' --select reviews > '${output}'`
    const terminal = spawn('script', ['-qec', command, '/dev/null'], { stdio: ['pipe', 'pipe', 'ignore'] })
    onTestFinished(() => void terminal.kill('SIGKILL'))
    let isStopped = false
    terminal.stdout.on('data', (chunk: Buffer) => {
      if (isStopped || !chunk.includes('\x1b[K')) return
      isStopped = true
      terminal.stdin.write('\x13')
    })
    const status = await new Promise((resolve) => terminal.on('close', resolve))
    expect([isStopped, status]).toEqual([true, 0])
    expect(readFileSync(output, 'utf8')).toMatch(/^reviews +complete +400/m)
  },
)
