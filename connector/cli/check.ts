import {
  CommandError,
  type CommandIo,
  defineCommand,
  describeFailure,
  type Failure,
  failureStatus,
  getOrThrow,
  loadConfig,
  runOrThrow,
} from '../cdk'
import { type SourceConfig, sourceFormat } from '../config'
import { buildStreams, type CheckFinding, checkStreams } from '../runtime'
import { selectStreams } from '../streams'
import { configOption, selectOption, variablePrefix } from './options'
import { formatJson, formatTable } from './table'

/** A finding of the service, or of the configuration, which comes first. */
type CheckStep = Omit<CheckFinding, 'check'> & { readonly check: CheckFinding['check'] | 'configuration' }

type CheckReport = { readonly steps: ReadonlyArray<CheckStep>; readonly warnings: ReadonlyArray<string> }

export const checkCommand = defineCommand({
  name: 'check',
  summary: 'Says whether a configuration works: the service, the token, and access to each stream.',
  options: {
    config: configOption,
    select: selectOption,
    json: { type: 'boolean', help: 'Print the findings as JSON' },
  },
  examples: ['feedback check --config config.json', 'feedback check --config ENV --select reviews --json'],
  notes:
    'Asks each operation for a few rows and changes nothing. Exit status: 0 everything works, 78 someone must change something, 75 check again later.',
  run: async (io, { options }) => {
    const { steps, warnings } = await checkAll(io, options.config, options.select)
    const failures = steps.flatMap(({ failure }) => (failure === undefined ? [] : [redactText(io, failure)]))
    if (options.json) await io.print(formatJson(toJsonReport(io, { steps, warnings })))
    else {
      await io.print(formatSteps(io, steps))
      for (const warning of warnings) io.printWarning(warning)
      await io.print(
        failures.length === 0 ? '\nEverything works.\n' : `\n${failures.length} of ${steps.length} failed.\n`,
      )
    }
    return failures.length === 0 ? 0 : failureStatus(failures)
  },
})

const redactText = (io: CommandIo, failure: Failure): Failure => ({
  ...failure,
  message: io.redactText(failure.message),
})

/** A configuration that cannot be used is the only finding. */
const checkAll = async (
  io: CommandIo,
  paths: ReadonlyArray<string>,
  select: string | undefined,
): Promise<CheckReport> => {
  try {
    const config = await loadConfig(io, sourceFormat, paths, variablePrefix)
    const names = listStreamNames(config, select)
    const { findings, warnings } = await runOrThrow(checkStreams(config, names))
    return { steps: [{ check: 'configuration', status: 'ok' }, ...findings], warnings }
  } catch (error) {
    if (!(error instanceof CommandError)) throw error
    return { steps: [{ check: 'configuration', status: 'failed', failure: error.failure }], warnings: [] }
  }
}

const listStreamNames = (config: SourceConfig, select: string | undefined): ReadonlyArray<string> =>
  getOrThrow(selectStreams(getOrThrow(buildStreams(config)), select)).map(({ name }) => name)

const toJsonReport = (io: CommandIo, { steps, warnings }: CheckReport) => {
  const failed = steps.find(({ failure }) => failure !== undefined)?.failure
  return {
    ok: failed === undefined,
    failure: failed === undefined ? null : describeFailure(redactText(io, failed)),
    checks: steps.map(({ failure, ...step }) => ({
      ...step,
      ...(failure === undefined ? {} : { failure: describeFailure(redactText(io, failure)) }),
    })),
    warnings,
  }
}

const formatSteps = (io: CommandIo, steps: ReadonlyArray<CheckStep>): string =>
  formatTable(
    ['check', 'result', ''],
    steps.map(({ check, stream, status, failure, note = '' }) => [
      stream ?? check,
      status === 'failed' ? 'FAILED' : status,
      failure === undefined ? note : io.redactText(failure.message),
    ]),
  )
