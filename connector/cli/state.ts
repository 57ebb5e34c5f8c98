import {
  type CommandIo,
  type CommandOptions,
  defineCommand,
  formatStateFile,
  getOrThrow,
  loadAirbyteState,
  type ParsedOptions,
  type SourceState,
  suggestName,
  usageError,
} from '../cdk'
import { importState, listStateTexts } from '../snapshot'
import { mergeStates } from '../streams'
import { jsonFailureOption, placeOptions, verbUsageError } from './options'
import { refuseDatabaseAsOutput, writeOutputFile } from './output-file'
import { usePlace } from './snapshot-file'

const stateOptions = {
  ...placeOptions,
  out: { type: 'string', value: 'FILE', help: 'export, merge: the file to write; stdout if left out' },
  state: { type: 'string', value: 'FILE', help: 'import: the state, from source-feedback, tap-feedback or export' },
  json: jsonFailureOption,
} as const satisfies CommandOptions

type StateAction = (io: CommandIo, parsed: ParsedOptions<typeof stateOptions>) => Promise<void>

export const stateCommand = defineCommand({
  name: 'state',
  summary: 'Exports the states of a snapshot, imports states into it, or merges the states of a shared backfill.',
  operands: 'export|import|merge [FILE…]',
  options: stateOptions,
  examples: [
    'feedback state export --db reviews.duckdb --out state.json',
    'feedback state import --db reviews.duckdb --state state.json',
    'feedback state merge state-0.json state-1.json --out state.json',
  ],
  notes:
    'Import replaces the states of the streams it names and ' +
    'keeps the others. Exit status: 0, or 78 if a file is wrong.',
  run: async (io, parsed) => {
    const [name, ...files] = parsed.positionals
    const action =
      name !== undefined && (files.length === 0) === (name !== 'merge') ? stateActions.get(name) : undefined
    if (action === undefined)
      throw verbUsageError(
        'feedback state',
        ' needs one of export, import, or merge with the files to merge.' +
          `${name === undefined ? '' : suggestName(name, [...stateActions.keys()])}`,
      )
    await action(io, parsed)
    return 0
  },
})

const writeOutput = (io: CommandIo, out: string | undefined, text: string): Promise<void> =>
  out === undefined ? io.print(text) : writeOutputFile(out, text)

const exportStates: StateAction = async (io, { options }) => {
  const { db, out } = options
  if (out !== undefined) await refuseDatabaseAsOutput(out, db)
  return writeOutput(io, out, formatStateFile(await usePlace(io, 'feedback state', options, 'read', listStateTexts)))
}

const mergeStateFiles: StateAction = async (io, { options: { out }, positionals: [, ...files] }) => {
  if (out !== undefined) await refuseDatabaseAsOutput(out, undefined)
  const states: SourceState[] = []
  for (const file of files) states.push(await loadAirbyteState(file))
  const merged = Object.entries(getOrThrow(mergeStates(states)))
  return writeOutput(
    io,
    out,
    formatStateFile(merged.map(([stream, state]) => ({ stream, state: JSON.stringify(state) }))),
  )
}

const importStates: StateAction = async (io, { options }) => {
  const { state } = options
  if (state === undefined) throw usageError('feedback state import: --state is missing.')
  const imported = await loadAirbyteState(state)
  await usePlace(io, 'feedback state', options, 'change', (snapshot) => importState(snapshot, imported, Date.now()))
  io.printWarning(`Imported the state of ${Object.keys(imported).join(', ') || 'no stream'}.`)
}

const stateActions: ReadonlyMap<string, StateAction> = new Map([
  ['export', exportStates],
  ['import', importStates],
  ['merge', mergeStateFiles],
])
