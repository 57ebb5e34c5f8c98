import { formatLines } from '../support/destination-input'
import { newTempPath, writeTempFile } from '../support/files'
import type { Connector } from './container'
import type { Json } from './model/connection'

/** How a scripted source ends: with an exit status, or killed, as where its memory is used up. */
export type SourceEnd = number | 'SIGKILL'

/** A source that prints these lines and ends this way. It represents any source connected to our destination. */
export const scriptedSource = (lines: ReadonlyArray<Json>, end: SourceEnd = 0): Connector => ({
  entrypoint: `sh -c 'cat "$SOURCE_LINES"; ${end === 'SIGKILL' ? 'kill -9 $$' : `exit ${end}`}'`,
  config: {},
  env: { SOURCE_LINES: writeTempFile(formatLines(lines), 'jsonl') },
})

/**
 * A destination that keeps all it gets in a file and returns each state. It represents any destination connected to our
 * source.
 */
export type ObedientDestination = Connector & { readonly received: string }

const keepAll = String.raw`tee -a "$RECEIVED" | grep --line-buffered "^.\"type\":\"STATE\"" || true`

const obedient = (first: string): ObedientDestination => {
  const received = newTempPath('jsonl')
  return { entrypoint: `sh -c '${first}${keepAll}'`, config: {}, env: { RECEIVED: received }, received }
}

export const obedientDestination = (): ObedientDestination => obedient('')

/** Reads nothing for the given seconds. */
export const slowDestination = (seconds: number): ObedientDestination => obedient(`sleep ${seconds}; `)

/** Reads the given number of lines in the first attempt of a job, and fails. */
export const failingDestination = (lines: number): ObedientDestination =>
  obedient(`if [ "$WORKER_JOB_ATTEMPT" = 0 ]; then head -n ${lines} >/dev/null; exit 1; fi; `)
