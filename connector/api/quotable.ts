import type * as t from 'io-ts'
import { createRedactor } from '../cdk/redact'
import { type JsonSchema, toJsonSchema } from '../cdk/schema'
import { ExportRequest } from './model/export'
import { Location } from './model/location'
import { CommentsForm, ReviewsRequest } from './model/transparency'
import { VisitRecord } from './model/visit-record'

const maxMessageLength = 200

const attributeNames = (codec: t.Any): ReadonlyArray<string> =>
  Object.keys((toJsonSchema(codec).properties ?? {}) as Readonly<Record<string, JsonSchema>>)

/** Words that speak of requests and of nobody's life. */
const knownWordList = `
a access accesstoken account active after again allowed already an and another any api application are array at attempts
authorization available bad batch be been before between body boolean but by call calls cannot characters client code comment
comments configuration configured connection contain contains content could create created credentials data database date day
days denied deprecated did disabled does downstream duplicate each element elements email empty enabled endpoint entities entity
entry error errors exceed exceeded exceeds exist exists expected expiration expired export external failed failure feature
field fields file filter first for forbidden format found from future gateway given greater has have header headers hour hours
http id identifier identifiers ids in inactive inside integer internal invalid is it item items json key keys large last later
least length less limit limits list location locations long longer lookup maintenance malformed match maximum may measure message
method milliseconds min max minimum minute minutes missing more most must name names no none not null number object of offset
on once one only operation operations or out page pages parameter parameters parse past path pattern perpage permission
permissions person please position present preview processing property provided quota range rate rating read reason record
records refused reject rejected request requests required resource response retry review reviews role roll scope scroll second
seconds secret see server service services short should size slow small some something sort source sources start started state
status stopped string sync task temporarily temporary than that the their then there this time timeout times to token tokens
too try type unable unauthorized unavailable unexpected unique unknown unsupported unprocessable until up update url use used
user utc valid validation value values version visit visits was were went when which while window with within without wrong year years
you your yyyy mm dd hh ss sss
`

const knownWords = new Set([
  ...knownWordList.trim().split(/\s+/),
  ...[ExportRequest, Location, VisitRecord, CommentsForm, ReviewsRequest]
    .flatMap(attributeNames)
    .map((name) => name.toLowerCase()),
])

const isKnownWord = (word: string): boolean => knownWords.has(word.toLowerCase()) || /^\d{1,4}$/.test(word)

/**
 * What the service says, as it may be repeated: one short line of words about requests. An error may quote anything that is said
 * of people, and no rule knows a name when it sees one; so every other word is masked, and so is all that `hidden` holds.
 */
export const maskMessage = (text: string, hidden: ReadonlyArray<string> = []): string =>
  createRedactor(hidden)(text.slice(0, 10_000).replace(/[\p{C}\s]+/gu, ' '))
    // Seven digits may be a telephone number, or a birthday.
    .replace(/\d(?:[\s().+/-]*\d){6,}/g, '***')
    .replace(/[\p{L}\p{M}\p{N}_]+/gu, (word) => (isKnownWord(word) ? word : '***'))
    .replace(/\*\*\*(?:[^\p{L}\p{N}]*\*\*\*)+/gu, '***')
    .trim()
    .slice(0, maxMessageLength)
