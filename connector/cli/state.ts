import { writeFile } from 'node:fs/promises'
import {
  CommandError,
  type CommandIo,
  configFailure,
  defineCommand,
  formatStateFile,
  type ParsedOptions,
  type SourceState,
  usageError,
} from '../cdk'
import { getOrThrow, loadAirbyteState } from '../config'
import { importState, listStateTexts } from '../snapshot'
import { mergeStates } from '../streams'
import { dbOption, useSnapshot } from './snapshot'

export const stateCommand = defineCommand({
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
    const run =
      action !== undefined && (more.length === 0) === (action !== 'merge') ? stateActions.get(action) : undefined
    if (run === undefined)
      throw usageError(
        'feedback state wants one of export, import, or merge with the files to merge. See feedback state --help.',
      )
    await run(io, given)
    return 0
  },
})

const exportStates = async (io: CommandIo, { options }: ParsedOptions): Promise<void> => {
  return writeOutput(
    io,
    options.out,
    formatStateFile(await useSnapshot(requireDbPath(options), 'read', listStateTexts)),
  )
}

const writeOutput = async (io: CommandIo, out: ParsedOptions['options'][string], text: string): Promise<void> => {
  if (out === undefined) return io.print(text)
  try {
    await writeFile(String(out), text)
  } catch (error) {
    throw new CommandError(configFailure(`${out} cannot be written (${(error as NodeJS.ErrnoException).code}).`))
  }
}

const requireDbPath = ({ db }: ParsedOptions['options']): string => {
  if (db === undefined) throw usageError('feedback state: --db is missing. See feedback state --help.')
  return String(db)
}

const mergeStateFiles = async (io: CommandIo, { options, positionals: [, ...files] }: ParsedOptions): Promise<void> => {
  const states: SourceState[] = []
  for (const file of files) states.push(await loadAirbyteState(file))
  const merged = getOrThrow(mergeStates(states))
  return writeOutput(
    io,
    options.out,
    formatStateFile(Object.entries(merged).map(([stream, state]) => ({ stream, state: JSON.stringify(state) }))),
  )
}

const importStates = async (io: CommandIo, { options }: ParsedOptions): Promise<void> => {
  if (options.state === undefined) throw usageError('feedback state import: --state is missing.')
  const given = await loadAirbyteState(String(options.state))
  await useSnapshot(requireDbPath(options), 'change', (snapshot) => importState(snapshot, given, Date.now()))
  io.printWarning(`Imported the state of ${Object.keys(given).join(', ') || 'no stream'}.`)
}

const stateActions: ReadonlyMap<string, (io: CommandIo, given: ParsedOptions) => Promise<void>> = new Map([
  ['export', exportStates],
  ['import', importStates],
  ['merge', mergeStateFiles],
])
