import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'

const usage = join(import.meta.dirname, 'usage.cjs')

/**
 * Runs a Node program with its input from a file and its output into a pipe, which is counted and discarded. Returns
 * seconds, CPU seconds and the peak in MiB.
 */
export const measure = async (folder, args, { stdin = '/dev/null' } = {}) => {
  const file = join(folder, 'usage.json')
  const started = process.hrtime.bigint()
  const child = spawn(
    'bash',
    ['-o', 'pipefail', '-c', '"$@" <"$BENCH_STDIN" | wc -lc', 'bench', process.execPath, '--require', usage, ...args],
    {
      env: { ...process.env, BENCH_USAGE: file, BENCH_STDIN: stdin },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  const [counts, errors, [status]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  const seconds = Number(process.hrtime.bigint() - started) / 1e9
  if (status !== 0) throw new Error(`${args.join(' ')}\nended with ${status}\n${errors}${counts}`)
  const [lines, bytes] = counts.trim().split(/\s+/).map(Number)
  return { seconds, lines, bytes, ...JSON.parse(readFileSync(file, 'utf8')) }
}
