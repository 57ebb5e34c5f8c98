import {
  CommandError,
  type CommandIo,
  defineCommand,
  describeFailure,
  type Failure,
  failureStatus,
  getOrThrow,
  runOrThrow,
} from '../cdk'
import type { SourceConfig } from '../config'
import { buildStreams, type CheckStep, checkStreams, type Finding } from '../runtime'
import { selectStreams } from '../streams'
import { loadSourceConfig } from './configured-source'
import { configOption, formatNextSteps, selectOption } from './options'
import { escapeControls, formatJson, formatTable, paintText } from './table'

/** A step of the check. The configuration comes first. */
type ReportedStep = Omit<CheckStep, 'check'> & { readonly check: CheckStep['check'] | 'configuration' }

type CheckReport = {
  readonly steps: ReadonlyArray<ReportedStep>
  readonly findings: ReadonlyArray<Finding>
  readonly warnings: ReadonlyArray<string>
}

export const checkCommand = defineCommand({
  name: 'check',
  summary: 'Checks a configuration, and what a run will find: token, pages, windows, number of reviews.',
  options: {
    config: configOption,
    select: selectOption,
    json: { type: 'boolean', help: 'Print the findings as JSON' },
  },
  examples: ['feedback check --config config.json', 'feedback check --config ENV --select reviews --json'],
  notes: [
    'Asks each operation for a few rows, then sends at most 36 more requests, within the configured rate. It',
    'changes nothing and takes at most a minute. docs/first-sync.md explains its messages.',
    'Exit status: 0 everything works, 78 someone must change something, 75 check again later.',
  ].join('\n'),
  run: async (io, { options }) => {
    const report = await checkAll(io, options.config, options.select)
    const { steps, findings, warnings } = report
    const failures = steps.flatMap(({ failure }) => (failure === undefined ? [] : [redactText(io, failure)]))
    if (options.json) await io.print(formatJson(toJsonReport(io, report)))
    else {
      await io.print(formatSteps(io, steps))
      if (findings.length > 0) await io.print(formatFindings(io, findings))
      if (warnings.length > 0) await io.print(formatWarnings(io, warnings))
      const next = formatNextSteps([`feedback sync ${formatConfigArgs(options.config)} --db reviews.duckdb`])
      await io.print(
        failures.length === 0
          ? `\n${paintText(io, 'green', 'Everything works.')}\n${next}`
          : `\n${paintText(io, 'red', `${failures.length} of ${steps.length} failed.`)}\n`,
      )
    }
    return failures.length === 0 ? 0 : failureStatus(failures)
  },
})

const formatConfigArgs = (paths: ReadonlyArray<string>): string => paths.map((path) => `--config ${path}`).join(' ')

const redactText = (io: CommandIo, failure: Failure): Failure => ({
  ...failure,
  message: io.redactText(failure.message),
})

/** If the configuration cannot be used, it is the only step. */
const checkAll = async (
  io: CommandIo,
  paths: ReadonlyArray<string>,
  select: string | undefined,
): Promise<CheckReport> => {
  try {
    const config = await loadSourceConfig(io, paths)
    const names = listStreamNames(config, select)
    const { steps, findings, warnings } = await runOrThrow(checkStreams(config, names, io.env))
    return { steps: [{ check: 'configuration', status: 'ok' }, ...steps], findings, warnings }
  } catch (error) {
    if (!(error instanceof CommandError)) throw error
    return {
      steps: [{ check: 'configuration', status: 'failed', failure: error.failure }],
      findings: [],
      warnings: [],
    }
  }
}

const listStreamNames = (config: SourceConfig, select: string | undefined): ReadonlyArray<string> =>
  getOrThrow(selectStreams(getOrThrow(buildStreams(config)), select)).map(({ name }) => name)

const toJsonReport = (io: CommandIo, { steps, findings, warnings }: CheckReport) => {
  const failed = steps.find(({ failure }) => failure !== undefined)?.failure
  return {
    ok: failed === undefined,
    failure: failed === undefined ? null : describeFailure(redactText(io, failed)),
    checks: steps.map(({ failure, ...step }) => ({
      ...step,
      ...(failure === undefined ? {} : { failure: describeFailure(redactText(io, failure)) }),
    })),
    findings: findings.map(({ finding, isKnown, text, value }) => ({
      finding,
      known: isKnown,
      text: io.redactText(text),
      value,
    })),
    warnings: warnings.map((warning) => io.redactText(warning)),
  }
}

const resultColors = { ok: 'green', FAILED: 'red', skipped: 'yellow' } as const

const isResult = (cell: string): cell is keyof typeof resultColors => Object.hasOwn(resultColors, cell)

const formatSteps = (io: CommandIo, steps: ReadonlyArray<ReportedStep>): string => {
  const said = new Set<string>()
  /** The message, unless another operation already failed for the same reason. */
  const describe = ({ message }: Failure): string => {
    const reason = message.replace(/^[^:]+: /, '')
    if (said.has(reason)) return 'as above'
    said.add(reason)
    return io.redactText(message)
  }
  return formatTable(
    ['check', 'result', ''],
    steps.map(({ check, stream, status, failure, note = '' }) => [
      stream ?? check,
      status === 'failed' ? 'FAILED' : status,
      failure === undefined ? note : describe(failure),
    ]),
    (cell, text) => (isResult(text) ? paintText(io, resultColors[text], cell) : cell),
  )
}

const formatFindings = (io: CommandIo, findings: ReadonlyArray<Finding>): string => {
  const unknownNames = new Set(findings.flatMap(({ finding, isKnown }) => (isKnown ? [] : [finding])))
  return `\n${formatTable(
    ['found out', ''],
    findings.map(({ finding, text }) => [finding, io.redactText(text)]),
    (cell, text) => (unknownNames.has(text) ? paintText(io, 'yellow', cell) : cell),
  )}`
}

/** Warnings go to stdout, after the results that they are about. */
const formatWarnings = (io: CommandIo, warnings: ReadonlyArray<string>): string => {
  const title = paintText(io, 'yellow', 'Warning:')
  return `\n${warnings.map((warning) => `${title} ${escapeControls(io.redactText(warning))}\n`).join('')}`
}
