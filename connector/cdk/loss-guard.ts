import * as E from 'fp-ts/Either'
import * as t from 'io-ts'
import { configFailure, transientFailure } from './failure'
import { parseJson } from './json/parse'
import type { DecodedLine, DecodeOptions, InputLine } from './protocol'

/**
 * How a decoder handles lines that lose records. For a destination, the run ends. For a snapshot, the run continues
 * without them and keeps no later state.
 */
export type LossGuard = {
  /** A broken line that was a record. */
  readonly rejectLine: (line: InputLine, problem: string) => DecodedLine
  /** A line that is not a message: rejected if it may be a broken record, otherwise skipped. */
  readonly passLine: (line: InputLine) => DecodedLine
  /** A valid line that shows that earlier records are missing. */
  readonly reportLoss: (line: InputLine, problem: string) => DecodedLine
  readonly hasLoss: () => boolean
  /** Replaces a state that comes after a loss: one warning for all of them. */
  readonly omitState: () => DecodedLine
}

export const createLossGuard = ({ purpose }: Pick<DecodeOptions, 'purpose'>): LossGuard => {
  let lossyLine = 0
  let isReported = false
  const rejectLine = (line: InputLine, problem: string, skipped = problem): DecodedLine => {
    if (purpose === 'deliver') return refuseLine(line, problem)
    lossyLine ||= line.number
    return skipLine(line, skipped)
  }
  return {
    rejectLine,
    passLine: (line) =>
      mayHoldRecord(line)
        ? rejectLine(line, 'is not a message and may be a broken record', 'is not a message')
        : skipLine(line, 'is not a message'),
    reportLoss: (line, problem) => {
      const failure = transientFailure(
        `Line ${line.number} of the input ${problem}. Neither this nor a later ` +
          'state is kept. Make sure that nothing drops records on the way, then run again.',
      )
      if (purpose === 'deliver') return E.left(failure)
      lossyLine ||= line.number
      isReported = true
      return warnOf(failure.message)
    },
    hasLoss: () => lossyLine > 0,
    omitState: () => {
      if (isReported) return E.right([])
      isReported = true
      return warnOf(`No state after line ${lossyLine} of the input is kept, since that line may have been a record.`)
    },
  }
}

const warnOf = (message: string): DecodedLine => E.right([{ _tag: 'Log', level: 'warn', message }])

/** The beginning of a message that was cut off: invalid JSON that may be a record. */
export const isCutMessage = (bytes: Buffer): boolean => {
  const text = bytes.toString('utf8')
  return looksLikeRecord(text) && E.isLeft(parseJson(text))
}

const looksLikeRecord = (text: string): boolean => /^\s*\{|"RECORD"|"(record|emitted_at)"\s*:/.test(text)

const RecordLike = t.union([
  t.type({ record: t.union([t.type({ data: t.UnknownRecord }), t.type({ stream: t.string })]) }),
  t.type({ stream: t.string, record: t.UnknownRecord }),
])

const isRecordLike = (value: unknown): boolean =>
  Array.isArray(value)
    ? value.some(isRecordLike)
    : RecordLike.is(value) || (t.UnknownRecord.is(value) && /^\s*record\s*$/i.test(String(value.type)))

/**
 * True for a line that may have been a record: a JSON object that was cut off, joined with another or changed, or a
 * record with other text around it. False for other text and for complete JSON, such as a log line.
 */
const mayHoldRecord = ({ bytes }: InputLine): boolean => {
  const text = bytes.toString('utf8').replace(/^\ufeff/, '')
  try {
    return isRecordLike(JSON.parse(text))
  } catch {
    return looksLikeRecord(text)
  }
}

/** A line that is skipped with a warning. */
export const skipLine = ({ number }: InputLine, problem: string): DecodedLine =>
  E.right([{ _tag: 'Log', level: 'warn', message: `Line ${number} of the input ${problem} and is skipped.` }])

/** A line that ends the run. */
export const refuseLine = (
  { number }: InputLine,
  problem: string,
  remedy = 'The program that wrote it is at fault, or something else writes to its output.',
): DecodedLine => E.left(configFailure(`Line ${number} of the input ${problem}. ${remedy}`))
