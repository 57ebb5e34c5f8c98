import {
  createSingerLogger,
  defineCommand,
  loadConfig,
  printDescription,
  protocols,
  requireConfigPaths,
  type SingerProgram,
  singerConfigNotes,
  singerConfigOption,
  singerOptions,
  withLoggedWarnings,
} from '../cdk'
import { runWrite } from '../runtime'
import { destinationFormat } from './destination-format'
import { dryRunOption, readPackageVersion } from './options'

const targetProgram: SingerProgram = {
  name: 'target-feedback',
  description: 'Singer target for the Feedback Data Service: visit_records and locations',
  version: readPackageVersion,
  capabilities: ['about', 'structured-logging'],
  spec: destinationFormat.spec,
  variablePrefix: 'TARGET_FEEDBACK',
}

export const targetCommand = defineCommand({
  name: '',
  summary: 'Singer target for the Feedback Data Service: writes visit_records and locations from stdin.',
  options: { config: singerConfigOption('TARGET_FEEDBACK'), 'dry-run': dryRunOption, ...singerOptions },
  notes: singerConfigNotes,
  examples: [
    'tap-csv --config csv.json | target-feedback --config config.json > state.jsonl',
    'target-feedback --config config.json --dry-run < messages.jsonl',
  ],
  run: async (plainIo, { options }) => {
    if (await printDescription(plainIo, targetProgram, options)) return 0
    const log = createSingerLogger(plainIo, targetProgram.name)
    const io = withLoggedWarnings(plainIo, log)
    const paths = requireConfigPaths(options.config)
    const config = await loadConfig(io, destinationFormat, paths, targetProgram.variablePrefix)
    const { failures } = await runWrite(
      io,
      { ...config, dry_run: config.dry_run || options['dry-run'] },
      { protocol: protocols.singer, catalog: [], log },
    )
    return failures.length === 0 ? 0 : 1
  },
})
