import * as E from 'fp-ts/Either'
import { readMembersAt, stringAt } from '../cdk/json-span'
import { parseExactJson } from './json-text'
import { VisitRecordResult } from './model/visit-record'
import { jsonResponse, type ResponseCodec } from './route'

const parsedVisitRecords = jsonResponse(VisitRecordResult)

/** The outcomes in an answer to operation 4; undefined where it is not as it should be. */
const extractOutcomes = (body: Buffer): VisitRecordResult | undefined => {
  const members = readMembersAt(body, { start: 0, end: body.length })
  const outcomes = readMembersAt(body, members?.get('records'))
  if (members === undefined || outcomes === undefined) return undefined
  const records: Record<string, string> = Object.create(null)
  for (const [id, span] of outcomes) {
    const outcome = stringAt(body, span)
    if (outcome === undefined) return undefined
    records[id] = outcome
  }
  const others = [...members].filter(([name]) => name !== 'records')
  const rest: unknown = {
    ...Object.fromEntries(
      others.map(([name, { start, end }]) => [name, parseExactJson(body.toString('utf8', start, end))]),
    ),
    records: {},
  }
  return VisitRecordResult.is(rest) ? { ...rest, records } : undefined
}

/**
 * The answer to operation 4. Its names are other ones in every answer, for which the engine's parser makes a form of object
 * each time, ten times as slow as walking the bytes; only what is wrong with an answer is left for the parser to say.
 */
export const visitRecordResponse: ResponseCodec<VisitRecordResult> = {
  ...parsedVisitRecords,
  decode: (answer) => {
    const { buffer, byteOffset, byteLength } = answer.body
    const result = E.tryCatch(() => extractOutcomes(Buffer.from(buffer, byteOffset, byteLength)), String)
    return E.isRight(result) && result.right !== undefined ? E.right(result.right) : parsedVisitRecords.decode(answer)
  },
}
