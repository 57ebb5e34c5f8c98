import { writeFile } from 'node:fs/promises'
import { stateFile } from '../cdk/airbyte'
import type { State } from '../cdk/catalog'
import { command, type Given, type Io, misused, Stopped } from '../cdk/cli'
import { configFailure } from '../cdk/failure'
import { loadState, orStop } from '../load'
import { importState, stateTexts } from '../snapshot/state'
import { mergeStates } from '../streams/merge-states'
import { dbOption, withSnapshot } from './db-option'

export const state = command({
  name: 'state',
  summary: 'Takes the state out of a snapshot, puts one in, or merges those of a shared backfill.',
  operands: 'export|import|merge [FILE…]',
  options: {
    db: { ...dbOption, help: 'export, import: the snapshot', required: false },
    out: { type: 'string', value: 'FILE', help: 'export, merge: where to write it; to stdout if left out' },
    state: { type: 'string', value: 'FILE', help: 'import: the state, from source-feedback, tap-feedback or export' },
  },
  examples: [
    'feedback state export --db reviews.duckdb --out state.json',
    'feedback state import --db reviews.duckdb --state state.json',
    'feedback state merge state-0.json state-1.json --out state.json',
  ],
  notes:
    'Import replaces the states of the streams it names and leaves the others. Exit status: 0, or 1 if a file is wrong.',
  run: async (io, given) => {
    const [action, ...more] = given.positionals
    const run = action !== undefined && (more.length === 0) === (action !== 'merge') ? actions.get(action) : undefined
    if (run === undefined)
      throw misused(
        'feedback state wants one of export, import, or merge with the files to merge. See feedback state --help.',
      )
    await run(io, given)
    return 0
  },
})

const exportTo = async (io: Io, { options }: Given): Promise<void> => {
  return put(io, options.out, stateFile(await withSnapshot(path(options), 'read', stateTexts)))
}

const put = async (io: Io, out: Given['options'][string], text: string): Promise<void> => {
  if (out === undefined) return io.print(text)
  try {
    await writeFile(String(out), text)
  } catch (error) {
    throw new Stopped(configFailure(`${out} cannot be written (${(error as NodeJS.ErrnoException).code}).`))
  }
}

const path = ({ db }: Given['options']): string => {
  if (db === undefined) throw misused('feedback state: --db is missing. See feedback state --help.')
  return String(db)
}

const mergeFrom = async (io: Io, { options, positionals: [, ...files] }: Given): Promise<void> => {
  const states: State[] = []
  for (const file of files) states.push(await loadState(file))
  const merged = orStop(mergeStates(states))
  return put(
    io,
    options.out,
    stateFile(Object.entries(merged).map(([stream, state]) => ({ stream, state: JSON.stringify(state) }))),
  )
}

const importFrom = async (io: Io, { options }: Given): Promise<void> => {
  if (options.state === undefined) throw misused('feedback state import: --state is missing.')
  const given = await loadState(String(options.state))
  await withSnapshot(path(options), 'change', (snapshot) => importState(snapshot, given, Date.now()))
  io.warn(`Imported the state of ${Object.keys(given).join(', ') || 'no stream'}.`)
}

const actions: ReadonlyMap<string, (io: Io, given: Given) => Promise<void>> = new Map([
  ['export', exportTo],
  ['import', importFrom],
  ['merge', mergeFrom],
])
