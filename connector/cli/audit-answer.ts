import * as E from 'fp-ts/Either'
import {
  type AuditAnswer,
  type DimensionDifference,
  decodeAnswer,
  type FeedbackDifference,
  type ReviewDifference,
  summarizeAnswer,
} from '../audit'
import { CommandError, type CommandIo, configFailure, defineCommand } from '../cdk'
import { readText } from './input-text'
import { formatJson } from './table'

const readAnswer = async (io: CommandIo, path: string): Promise<AuditAnswer> => {
  const decoded = decodeAnswer(await readText(io, path))
  if (E.isLeft(decoded))
    throw new CommandError(configFailure(`${path === '-' ? 'The answer on stdin' : path} ${decoded.left.message}`))
  return decoded.right
}

export const answerOption = {
  type: 'string',
  value: 'FILE',
  help:
    'Explain the answer to a statement, as CSV or JSON, instead of printing one; - is stdin. Takes --json, needs ' +
    'no other option',
} as const

/** The command behind `feedback audit --answer FILE`. */
export const answerCommand = defineCommand({
  name: 'audit --answer',
  summary: 'Explains the answer to an audit statement.',
  options: {
    answer: { ...answerOption, required: true },
    json: { type: 'boolean', help: 'Print the numbers as JSON' },
  },
  run: async (io, { options }) => {
    const summary = summarizeAnswer(await readAnswer(io, options.answer))
    const { of, differences, kinds, buckets } = summary
    const isEqual = differences === 0
    if (options.json) await io.print(formatJson({ equal: isEqual, of, differences, kinds, buckets }))
    else if (isEqual) await io.print('The table equals the service.\n')
    else
      await io.print(
        [
          `The table differs from the service in ${differences.toLocaleString('en')} ` +
            `${differences === 1 ? of.slice(0, -1) : of}:`,
          ...Object.entries(kinds).map(([kind, count]) => `  ${kind}: ${count.toLocaleString('en')}`),
          of === 'buckets' ? `Name what differs: --ids ${buckets.join(',')}` : 'Repair them: --repair with this answer',
          '',
        ].join('\n'),
      )
    return isEqual ? 0 : 1
  },
})

type NamedDifference = {
  readonly reviews: ReviewDifference
  readonly rows: FeedbackDifference
  readonly dimensions: DimensionDifference
}

/** The rows that an answer names. They must be reviews, rows of entities or dimensions, as `of` requires. */
export const readDifferences = async <Of extends keyof NamedDifference>(
  io: CommandIo,
  path: string,
  of: Of,
): Promise<ReadonlyArray<NamedDifference[Of]>> => {
  const answer = await readAnswer(io, path)
  if (answer.of === of || answer.of === 'nothing') return answer.differences as ReadonlyArray<NamedDifference[Of]>
  throw new CommandError(
    configFailure(
      `${path} names ${answer.of}. Give the answer to the statement ` +
        `${of === 'dimensions' ? 'about all of them' : 'of --ids'}, which names ${of}.`,
    ),
  )
}
