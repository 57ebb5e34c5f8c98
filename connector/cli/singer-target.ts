import { CommandError, configFailure, decodeSinger, defineCommand, failureLogEntries, parseExactJson } from '../cdk'
import { destinationSpec, loadDestinationConfigs } from '../config'
import { runWrite } from '../runtime'
import { dryRunOption } from './options'
import {
  createSingerLogger,
  describeProgram,
  formatProgramMarkdown,
  readPackageVersion,
  type SingerProgram,
  withLoggedWarnings,
} from './singer-program'

const programName = 'target-feedback'

const targetProgram: SingerProgram = {
  name: programName,
  description: 'Singer target for the Feedback Data Service: visit_records and locations',
  capabilities: ['about', 'structured-logging'],
  spec: destinationSpec,
  variablePrefix: 'TARGET_FEEDBACK',
}

export const targetCommand = defineCommand({
  name: '',
  summary: 'Singer target for the Feedback Data Service: writes visit_records and locations from stdin.',
  options: {
    config: {
      type: 'string',
      value: 'FILE|ENV',
      multiple: true,
      help: 'The configuration, JSON; ENV: TARGET_FEEDBACK_…',
    },
    'dry-run': dryRunOption,
    about: { type: 'boolean', help: 'Tell name, version, capabilities and settings' },
    format: { type: 'string', value: 'FORMAT', help: 'Form of --about: text, json or markdown' },
    version: { type: 'boolean', help: 'Tell the version' },
  },
  notes: 'More than one --config: the later goes over the earlier, such as --config config.json --config ENV.',
  examples: [
    'tap-csv --config csv.json | target-feedback --config config.json > state.jsonl',
    'target-feedback --config config.json --dry-run < messages.jsonl',
  ],
  run: async (plain, { options }) => {
    if (options.version === true) {
      await plain.print(`${programName} ${readPackageVersion()}\n`)
      return 0
    }
    if (options.about === true) {
      const format = options.format ?? 'text'
      if (format !== 'text' && format !== 'json' && format !== 'markdown')
        throw new CommandError(configFailure('--format is wrong. Give text, json or markdown.'))
      const version = readPackageVersion()
      await plain.print(
        format === 'json'
          ? `${JSON.stringify(describeProgram(targetProgram, version), null, 2)}\n`
          : formatProgramMarkdown(targetProgram, version),
      )
      return 0
    }
    const log = createSingerLogger(plain, programName)
    const io = withLoggedWarnings(plain, log)
    const paths = [options.config ?? []].flat().map(String)
    if (paths.length === 0) throw new CommandError(configFailure('--config is missing: give a file, or ENV.'))
    const config = await loadDestinationConfigs(io, paths, targetProgram.variablePrefix)
    const { failures } = await runWrite(
      io,
      { ...config, dry_run: config.dry_run || options['dry-run'] === true },
      decodeSinger(parseExactJson),
      (level, message) => log({ level, message }),
    )
    for (const failure of failures) failureLogEntries(failure).forEach(log)
    return failures.length === 0 ? 0 : 1
  },
})
