import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import { configFailure, type Failure } from '../cdk'
import { type DimensionDifference, isDimensionKey } from './dimension-audit'
import { type FeedbackDifference, isEntityName, isFeedbackBucket } from './entity-statement'

/** A review that differs, according to an audit. `isBehind`: the table has an older version of it than the service. */
export type ReviewDifference = { readonly id: string; readonly difference: string; readonly isBehind: boolean }

/** A bucket that differs, according to an audit: a number for ids, an entity and a window for feedback. */
type BucketDifference = { readonly bucket: string; readonly difference: string }

/**
 * The warehouse's answer to a statement of an audit. `nothing`: a list without rows, which could answer any statement.
 */
export type AuditAnswer =
  | { readonly of: 'nothing'; readonly differences: readonly [] }
  | { readonly of: 'buckets'; readonly differences: ReadonlyArray<BucketDifference> }
  | { readonly of: 'reviews'; readonly differences: ReadonlyArray<ReviewDifference> }
  | { readonly of: 'rows'; readonly differences: ReadonlyArray<FeedbackDifference> }
  | { readonly of: 'dimensions'; readonly differences: ReadonlyArray<DimensionDifference> }

const reviewKinds: ReadonlyArray<string> = ['missing', 'extra', 'stale', 'newer', 'rows missing', 'doubled', 'changed']
const bucketKinds: ReadonlyArray<string> = [
  'missing',
  'extra',
  'missing and extra',
  'stale',
  'rows missing',
  'doubled',
  'rows missing and doubled',
  'changed',
]

/** `problem` continues the sentence that begins with the name of the answer's file. */
const answerFailure = (problem: string): E.Either<Failure, never> =>
  E.left(configFailure(`${problem}. Save the answer to the statement as CSV with a header, or as JSON.`))

/** The rows of an answer by column name. Names are in lower case, because warehouses change the case. */
type AnswerTable = {
  readonly columns: ReadonlyArray<string>
  readonly rows: ReadonlyArray<Readonly<Record<string, unknown>>>
}

/**
 * Decodes an answer as a warehouse client saved it: CSV with a header, a JSON array, or one object per line. The
 * failure's message continues the sentence that begins with the file name.
 */
export const decodeAnswer = (text: string): E.Either<Failure, AuditAnswer> => {
  const body = text.replace(/^\ufeff/, '').trim()
  if (body === '') return answerFailure('is empty, as after a client that failed')
  if (isDrawing(body)) return answerFailure('is a table drawn for people; psql needs --csv, for example')
  return pipe(/^[[{]/.test(body) ? readJsonTable(body) : readCsvTable(body), E.chain(decodeTable))
}

/** True if the text has the line that a client draws between header and rows. */
const isDrawing = (body: string): boolean =>
  body.split(/\r?\n/, 3).some((line) => /^\s*[-+|=┌─┬┐╭╮│├┼┤ ]{3,}$/.test(line))

const decodeTable = ({ columns, rows }: AnswerTable): E.Either<Failure, AuditAnswer> => {
  if (columns.length === 0) return E.right({ of: 'nothing', differences: [] })
  const isOfBuckets = columns.includes('bucket')
  if (!columns.includes('difference') || !(isOfBuckets || columns.includes('id')))
    return answerFailure('is not an answer to an audit: it has no columns bucket and difference, or id and difference')
  if (isOfBuckets) return decodeRows('buckets', rows, toBucketDifference)
  if (columns.includes('dimension')) return decodeRows('dimensions', rows, toDimensionDifference)
  return columns.includes('entity')
    ? decodeRows('rows', rows, toFeedbackDifference)
    : decodeRows('reviews', rows, toReviewDifference)
}

const decodeRows = <Of extends AuditAnswer['of'], A>(
  of: Of,
  rows: AnswerTable['rows'],
  toDifference: (row: AnswerTable['rows'][number]) => A | undefined,
): E.Either<Failure, { readonly of: Of; readonly differences: ReadonlyArray<A> }> => {
  const differences = rows.map(toDifference)
  const wrong = differences.indexOf(undefined)
  return wrong >= 0
    ? answerFailure(
        `is not an answer to an audit: row ${wrong + 1} has no ` +
          `${of === 'buckets' ? 'bucket' : 'id'} and difference of one`,
      )
    : E.right({ of, differences: differences.flatMap((each) => each ?? []) })
}

const toBucketDifference = (row: AnswerTable['rows'][number]): BucketDifference | undefined => {
  const [bucket, difference] = [String(row.bucket), String(row.difference)]
  const isKnown = /^\d{1,5}$/.test(bucket) || isFeedbackBucket(bucket)
  return isKnown && bucketKinds.includes(difference) ? { bucket, difference } : undefined
}

const toDimensionDifference = (row: AnswerTable['rows'][number]): DimensionDifference | undefined => {
  const [dimension, difference] = [String(row.dimension), String(row.difference)]
  return isDimensionKey(dimension) && reviewKinds.includes(difference) ? { dimension, difference } : undefined
}

const toFeedbackDifference = (row: AnswerTable['rows'][number]): FeedbackDifference | undefined => {
  const [entity, review] = [String(row.entity), toReviewDifference(row)]
  return isEntityName(entity) && review !== undefined
    ? { entity, id: review.id, difference: review.difference }
    : undefined
}

/** An id in a table may be something other than a number. An id that SQL could not quote is rejected. */
const toReviewDifference = (row: AnswerTable['rows'][number]): ReviewDifference | undefined => {
  const [id, difference] = [String(row.id ?? ''), String(row.difference)]
  return /^[^'"\\\p{Cc}]*$/u.test(id) && reviewKinds.includes(difference)
    ? { id, difference, isBehind: difference === 'stale' && Number(row.found_version) < Number(row.expected_version) }
    : undefined
}

const readJsonTable = (body: string): E.Either<Failure, AnswerTable> => {
  // An id may have more digits than a JSON number keeps, so it is read as a string.
  const exact = body.replace(/("id"\s*:\s*)(-?\d+)/gi, '$1"$2"')
  try {
    const values: unknown = exact.startsWith('[')
      ? JSON.parse(exact)
      : exact.split(/\r?\n/).flatMap((line) => (line.trim() === '' ? [] : [JSON.parse(line)]))
    if (Array.isArray(values) && values.every((value) => typeof value === 'object' && value !== null)) {
      const rows = values.map((value) =>
        Object.fromEntries(Object.entries(value).map(([name, cell]) => [name.toLowerCase(), cell])),
      )
      return E.right({ columns: Object.keys(rows[0] ?? {}), rows })
    }
  } catch {}
  return answerFailure('begins like JSON, but is neither a list of objects nor one object per line')
}

const readCsvTable = (body: string): E.Either<Failure, AnswerTable> => {
  const [header = '', ...lines] = body.split(/\r?\n/)
  const separator = [',', ';', '\t', '|'].find((sign) => header.includes(sign)) ?? ','
  const split = (line: string) => line.split(separator).map((cell) => cell.trim().replace(/^"(.*)"$/, '$1'))
  const columns = split(header).map((name) => name.toLowerCase())
  // Unaligned psql output ends with the number of rows.
  const cells = lines.filter((line) => !/^\(\d+ rows?\)$/.test(line)).map(split)
  return E.right({
    columns,
    rows: cells.map((row) => Object.fromEntries(row.map((cell, i) => [columns[i] ?? '', cell]))),
  })
}

/** The summary of an answer. */
type AnswerSummary = {
  readonly of: AuditAnswer['of']
  /** How many buckets or reviews differ. */
  readonly differences: number
  readonly kinds: Readonly<Record<string, number>>
  /** The buckets that differ, in the form that --ids accepts. */
  readonly buckets: ReadonlyArray<string>
}

export const summarizeAnswer = (answer: AuditAnswer): AnswerSummary => {
  const kinds: Record<string, number> = {}
  for (const { difference } of answer.differences) kinds[difference] = (kinds[difference] ?? 0) + 1
  return {
    of: answer.of,
    differences: answer.differences.length,
    kinds,
    buckets: answer.of === 'buckets' ? answer.differences.map(({ bucket }) => bucket) : [],
  }
}
