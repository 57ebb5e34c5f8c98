import { createHash } from 'node:crypto'
import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as TE from 'fp-ts/TaskEither'
import * as t from 'io-ts'
import { type ApiError, isRefusalInBody, VisitRecord, type VisitRecordResult } from '../api'
import {
  type BatchAnswer,
  defineSink,
  type InputRecord,
  type InputStream,
  type PreparedItem,
  printExactJson,
  type RecordVerdict,
  type Sink,
} from '../cdk'
import { convertTime } from './convert'
import { locationSink } from './locations'
import {
  checkMapping,
  createAttributeRules,
  createMappingReporter,
  createRecordMapper,
  formatColumn,
  isTombstoneRecord,
} from './mapping'
import { isServiceAnswering, type SinkTarget, toBatchAnswer } from './target'

const dayMillis = 86_400_000

/** The service rejects a visit that lacks any of these attributes. */
const requiredAttributes = ['email', 'locationCode', 'npi'] as const

const omitAttributes = (visit: VisitRecord, ...attributes: ReadonlyArray<keyof VisitRecord>): VisitRecord => {
  const rest = { ...visit }
  for (const attribute of attributes) delete rest[attribute]
  return rest
}

/** The service takes either a full name or its parts. The parts are preferred if first and last name are there. */
const chooseNameForm = (visit: VisitRecord): VisitRecord => {
  const { name, firstName, middleName, lastName } = visit
  if (name == null || (firstName == null && middleName == null && lastName == null)) return visit
  return firstName != null && lastName != null
    ? omitAttributes(visit, 'name')
    : omitAttributes(visit, 'firstName', 'middleName', 'lastName')
}

/** Sends only medicalRecordId if both ids are given, because the service gives it precedence. */
const choosePatientId = (visit: VisitRecord): VisitRecord =>
  visit.customerUniqueId == null || visit.medicalRecordId == null ? visit : omitAttributes(visit, 'customerUniqueId')

const formatMissing = (visit: VisitRecord, isNamed: boolean): string =>
  [...(isNamed ? [] : ['name']), ...requiredAttributes.filter((attribute) => visit[attribute] == null)]
    .map((attribute) => `${attribute} is missing`)
    .join('; ')

/** A visit in the service's form. The Left names each wrong attribute. `now` and `maxAge` in milliseconds. */
const normalizeVisit = (
  mappedVisit: VisitRecord,
  { now, maxAge }: { readonly now: number; readonly maxAge: number },
): E.Either<string, VisitRecord> => {
  const visit = choosePatientId(chooseNameForm(mappedVisit))
  const isNamed = visit.name != null || visit.firstName != null || visit.lastName != null
  if (!isNamed || requiredAttributes.some((attribute) => visit[attribute] == null))
    return E.left(formatMissing(visit, isNamed))
  if (!/^\s*[^\s@]+@[^\s@]+\s*$/.test(visit.email ?? '')) return E.left('email must be an e-mail address')
  return visit.visitTime != null && now - Date.parse(visit.visitTime) > maxAge
    ? E.left(`visitTime is older than max_visit_age_days (${maxAge / dayMillis})`)
    : E.right(visit)
}

/** The languages that need no mapping at the service (attribute languageValue). */
const builtInLanguages = new Set(['en', 'es', 'de', 'fr', 'pt', 'zh', 'ko', 'vi', 'hi'])

const isBuiltInLanguage = (language: string): boolean => builtInLanguages.has(language)

/** The text is a language code and not, say, a person's name. */
const isLanguageCode = (text: string): boolean =>
  /^[a-z]{2,3}$/.test(text) &&
  new Intl.DisplayNames(['en'], { type: 'language', fallback: 'none' }).of(text) !== undefined

/** Columns that platforms add to a record. Their values change with every run. */
const platformColumn = /^_(airbyte|ab|sdc)_/

const hashValue = (value: unknown): string =>
  createHash('sha256').update(printExactJson(value)).digest('hex').slice(0, 32)

const sortKeys = (value: unknown): unknown =>
  Array.isArray(value)
    ? value.map(sortKeys)
    : t.UnknownRecord.is(value)
      ? Object.fromEntries(
          Object.keys(value)
            .sort()
            .map((key) => [key, sortKeys(value[key])]),
        )
      : value

const valueAtPath = (columns: InputRecord, path: ReadonlyArray<string>): unknown =>
  path.reduce((value: unknown, name) => (t.UnknownRecord.is(value) ? value[name] : undefined), columns)

/**
 * An id for a visit without one, the same in every run: a hash of its stream and primary key, or of the whole record if
 * it has no key.
 */
const deriveVisitId = (
  { id, origin = id, key }: Pick<InputStream, 'id' | 'origin' | 'key'>,
  columns: InputRecord,
): string => {
  const values = key.map((path) => valueAtPath(columns, path))
  return values.length > 0 && values.every((value) => value !== undefined && value !== null && value !== '')
    ? hashValue([origin, values])
    : hashValue([
        origin,
        sortKeys(Object.fromEntries(Object.entries(columns).filter(([name]) => !platformColumn.test(name)))),
      ])
}

const acceptedVerdict: RecordVerdict = { _tag: 'Accepted' }
const unknownVerdict: RecordVerdict = { _tag: 'Unknown' }

const toVerdict = (outcome: string | undefined): RecordVerdict => {
  if (outcome === undefined) return unknownVerdict
  if (/^success$/i.test(outcome)) return acceptedVerdict
  return {
    _tag: 'Rejected',
    reason: /^error$/i.test(outcome) ? 'the service reports Error' : 'the service reports neither Success nor Error',
  }
}

/**
 * Turns a result that names no visit and reports no success into an application error. The service reports some errors
 * with HTTP status 200, such as an outage, a rate limit, a rejected token, or that no visit was sent.
 */
const failOnErrorStatus =
  (visitCount: number) =>
  (result: VisitRecordResult): E.Either<ApiError, VisitRecordResult> => {
    const { code, message } = result.status ?? {}
    const isSuccess = code == null || /^2\d\d$/.test(String(code)) || /^success$/i.test(message ?? '')
    const error: ApiError = { _tag: 'Application', code: String(code), message: message ?? '' }
    const isAnswer = isSuccess || Object.keys(result.records).length > 0 || (visitCount === 0 && isRefusalInBody(error))
    return isAnswer ? E.right(result) : E.left(error)
  }

const normalizeId = (id: string): string => id.trim().toLowerCase()

/** Outcomes by id, ignoring case and surrounding spaces; undefined if two ids become equal. */
const outcomesByNormalizedId = (
  ids: ReadonlyArray<string>,
  records: VisitRecordResult['records'],
): ReadonlyMap<string, string> | undefined => {
  const outcomes = new Map(Object.entries(records).map(([id, outcome]) => [normalizeId(id), outcome]))
  const isOneToOne = outcomes.size === Object.keys(records).length && new Set(ids.map(normalizeId)).size === ids.length
  return isOneToOne ? outcomes : undefined
}

/**
 * Interprets the answer to visits with these ids. An outcome for an unknown id may concern any visit, unless the batch
 * has only one.
 */
export const toVisitAnswer = (ids: ReadonlyArray<string>, { records }: VisitRecordResult): BatchAnswer => {
  const exactVerdicts = ids.map((id) => toVerdict(Object.hasOwn(records, id) ? records[id] : undefined))
  if (!exactVerdicts.includes(unknownVerdict)) return { _tag: 'Verdicts', verdicts: exactVerdicts }
  const [onlyOutcome, ...others] = Object.values(records)
  if (ids.length === 1 && onlyOutcome !== undefined && others.length === 0)
    return { _tag: 'Verdicts', verdicts: [toVerdict(onlyOutcome)] }
  const outcomes = outcomesByNormalizedId(ids, records)
  const verdicts = outcomes === undefined ? exactVerdicts : ids.map((id) => toVerdict(outcomes.get(normalizeId(id))))
  const namedCount = verdicts.filter((verdict) => verdict !== unknownVerdict).length
  return namedCount < Object.keys(records).length
    ? { _tag: 'Refused', reason: 'the answer names visits that were not sent', tooLarge: false }
    : { _tag: 'Verdicts', verdicts }
}

/**
 * If a visit to a location that this run could not write is rejected without a reason, that is most likely the cause.
 */
const explainRejections = (
  rejectedCodes: ReadonlySet<string>,
  visits: ReadonlyArray<VisitRecord>,
  answer: BatchAnswer,
): BatchAnswer =>
  answer._tag !== 'Verdicts' || rejectedCodes.size === 0
    ? answer
    : {
        ...answer,
        verdicts: answer.verdicts.map((verdict, index) =>
          verdict._tag === 'Rejected' && rejectedCodes.has(visits[index]?.locationCode ?? '')
            ? { ...verdict, reason: `${verdict.reason}; its location was rejected in this run` }
            : verdict,
        ),
      }

/** Sends visits, or none to check that the service answers. */
export const sendVisits = (
  { createVisitRecords }: Pick<SinkTarget['api'], 'createVisitRecords'>,
  visits: ReadonlyArray<VisitRecord>,
): TE.TaskEither<ApiError, VisitRecordResult> =>
  pipe(createVisitRecords(visits), TE.chainEitherK(failOnErrorStatus(visits.length)))

const sinkName = 'visit_records'

type VisitWithId = VisitRecord & { readonly visitRecordId: string }
const hasVisitId = (visit: VisitRecord): visit is VisitWithId => visit.visitRecordId != null

/** Operation 4. A visit may be sent again if no answer came, because the service counts each id once. */
export const visitRecordSink = defineSink<SinkTarget, VisitRecord>({
  name: sinkName,
  codec: VisitRecord,
  // A visit without an id gets one derived from its key, so no column has to be chosen.
  matchingKeys: [],
  operations: ['append'],
  open: (target) =>
    TE.right({
      prepare: (stream) =>
        pipe(
          checkMapping(stream, sinkName, VisitRecord, target.mapping[sinkName]),
          E.map(() => createPreparer(target, stream)),
        ),
      isReachable: isServiceAnswering(sendVisits(target.api, [])),
      write: (visits, isSuspect) =>
        pipe(
          target.resend(isSuspect)(sendVisits(target.api, visits)),
          TE.map((result) =>
            toVisitAnswer(
              visits.map(({ visitRecordId }) => visitRecordId ?? ''),
              result,
            ),
          ),
          TE.map((answer) => explainRejections(target.rejectedCodes, visits, answer)),
          TE.orElse((error) => TE.fromEither(toBatchAnswer('create visit records', error))),
        ),
      finish: () => E.right({ items: [], notes: [] }),
    }),
})

/** Without these a visit is refused, counted twice, or surveyed years later. */
const essentialAttributes = [...requiredAttributes, 'name', 'firstName', 'lastName', 'visitRecordId', 'visitTime']

const createPreparer = (target: SinkTarget, stream: InputStream) => {
  const { mapping, now, maxVisitAge, warn } = target
  const rules = createAttributeRules(target, sinkName, stream.name, essentialAttributes)
  const mapVisit = createRecordMapper(VisitRecord, rules, { visitTime: convertTime })
  const reportMapping = createMappingReporter(target, rules, VisitRecord, stream.name)
  const toldLanguages = new Set<string>()
  /** Quotes only language codes: with a wrong mapping, the column may hold any patient data. */
  const warnOnce = (value: string): void => {
    if (isBuiltInLanguage(value)) return
    const language = isLanguageCode(value) ? value : undefined
    const told = language ?? ''
    if (toldLanguages.has(told) || toldLanguages.size >= 20) return
    toldLanguages.add(told)
    warn(
      language === undefined
        ? `${stream.name}: languageValue${formatColumn(mapping[sinkName], 'languageValue')} holds values ` +
            'that are not language codes such as en. Check the mapping; the visits are sent as they are.'
        : `${stream.name}: the language ${language} needs a mapping at the service; its visits are sent as they are.`,
    )
  }
  let isNpiTold = false
  const warnOfNpi = (): void => {
    if (!isNpiTold)
      warn(
        `${stream.name}: npi${formatColumn(mapping[sinkName], 'npi')} holds values that do not have ten ` +
          'digits, which the service may refuse. Check the mapping; the visits are sent as they are.',
      )
    isNpiTold = true
  }
  return (columns: InputRecord): E.Either<string, PreparedItem<VisitWithId>> => {
    if (isTombstoneRecord(columns)) return deletionRefusal
    reportMapping(columns)
    const mapped = mapVisit(columns)
    const normalized = E.isLeft(mapped) ? mapped : normalizeVisit(mapped.right, { now: now(), maxAge: maxVisitAge })
    if (E.isLeft(normalized)) return normalized
    const visit = normalized.right
    if (!/^\d{10}$/.test(visit.npi?.trim() ?? '')) warnOfNpi()
    if (visit.languageValue != null) warnOnce(visit.languageValue)
    if (hasVisitId(visit)) return E.right({ item: visit, key: visit.visitRecordId })
    const key = deriveVisitId(stream, columns)
    return E.right({ item: { ...visit, visitRecordId: key }, key })
  }
}

const deletionRefusal = E.left('the record says that its row was deleted, and a visit cannot be taken back')

/** Every object that can be written. Locations come first, since visits refer to them. */
export const sinks: ReadonlyArray<Sink<SinkTarget>> = [locationSink, visitRecordSink]
