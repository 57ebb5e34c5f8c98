import * as E from 'fp-ts/Either'
import * as t from 'io-ts'
import { configFailure, transientFailure } from './failure'
import { parseJson } from './json/parse'
import type { DecodedLine, DecodeOptions, InputLine } from './protocol'

/**
 * What a decoder does with lines that lose records: a destination ends, a snapshot goes on without them and keeps no
 * later state.
 */
export type LossGuard = {
  /** A wrong line that was a record. */
  readonly rejectLine: (line: InputLine, problem: string) => DecodedLine
  /** A line that is no message: rejected if it may be a broken record, skipped if it is other text. */
  readonly passLine: (line: InputLine) => DecodedLine
  /** A right line that shows that records before it are missing. */
  readonly reportLoss: (line: InputLine, problem: string) => DecodedLine
  /** Whether a record was lost. */
  readonly hasLoss: () => boolean
  /** What takes the place of a state that comes after a loss: a warning, once. */
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
        ? rejectLine(line, 'is no message, and may be a broken record', 'is no message')
        : skipLine(line, 'is no message'),
    reportLoss: (line, problem) => {
      const failure = transientFailure(
        `Line ${line.number} of the input ${problem}. Neither it nor a later ` +
          'state is kept: see that nothing drops records on the way, and run again.',
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

/** The beginning of a message that was cut: what may be a record and is no JSON. */
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
 * Whether a line that is no message may have been a record: a JSON object that was cut, joined with another or changed,
 * or a record with other text around it. Other text and complete JSON, such as a log line, are none.
 */
const mayHoldRecord = ({ bytes }: InputLine): boolean => {
  const text = bytes.toString('utf8').replace(/^\ufeff/, '')
  try {
    return isRecordLike(JSON.parse(text))
  } catch {
    return looksLikeRecord(text)
  }
}

/** A line that is skipped with a warning, and why. */
export const skipLine = ({ number }: InputLine, problem: string): DecodedLine =>
  E.right([{ _tag: 'Log', level: 'warn', message: `Line ${number} of the input ${problem} and is skipped.` }])

/** A line that ends the run, and why. */
export const refuseLine = (
  { number }: InputLine,
  problem: string,
  remedy = 'The program that wrote it is at fault, or something else writes to its output.',
): DecodedLine => E.left(configFailure(`Line ${number} of the input ${problem}. ${remedy}`))
