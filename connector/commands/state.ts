import { writeFile } from 'node:fs/promises'
import { command, type Given, type Io, Stopped } from '../cdk/cli'
import { configFailure } from '../cdk/failure'
import { loadState } from '../load'
import { exportState, importState } from '../snapshot/state'
import { dbOption, withSnapshot } from './db-option'

export const state = command({
  name: 'state',
  summary: 'Takes the state out of a snapshot, or puts one in.',
  operands: 'export|import',
  options: {
    db: dbOption,
    out: { type: 'string', value: 'FILE', help: 'export: where to write it; to stdout if left out' },
    state: { type: 'string', value: 'FILE', help: 'import: the state, from source-feedback, tap-feedback or export' },
  },
  examples: [
    'feedback state export --db reviews.duckdb --out state.json',
    'feedback state import --db reviews.duckdb --state state.json',
  ],
  notes:
    'Import replaces the states of the streams it names and leaves the others. Exit status: 0, or 1 if a file is wrong.',
  run: async (io, given) => {
    const [action, ...more] = given.positionals
    const run = more.length === 0 && action !== undefined ? actions.get(action) : undefined
    if (run === undefined)
      throw new Stopped(configFailure('feedback state wants one of export, import. See feedback state --help.'))
    await run(io, given)
    return 0
  },
})

const exportTo = async (io: Io, { options }: Given): Promise<void> => {
  const text = await withSnapshot(String(options.db), 'read', exportState)
  if (options.out === undefined) return io.print(text)
  try {
    await writeFile(String(options.out), text)
  } catch (error) {
    throw new Stopped(configFailure(`${options.out} cannot be written (${(error as NodeJS.ErrnoException).code}).`))
  }
}

const importFrom = async (io: Io, { options }: Given): Promise<void> => {
  if (options.state === undefined) throw new Stopped(configFailure('feedback state import: --state is missing.'))
  const given = await loadState(String(options.state))
  await withSnapshot(String(options.db), 'change', (snapshot) => importState(snapshot, given, Date.now()))
  io.warn(`Imported the state of ${Object.keys(given).join(', ') || 'no stream'}.`)
}

const actions: ReadonlyMap<string, (io: Io, given: Given) => Promise<void>> = new Map([
  ['export', exportTo],
  ['import', importFrom],
])
