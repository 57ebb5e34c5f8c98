import * as E from 'fp-ts/Either'
import type { VisitRecord } from '../api/model/visit-record'

const dayMillis = 86_400_000

/** Attributes without which the service takes no visit (Visit record). */
const requiredAttributes = ['email', 'locationCode', 'npi'] as const

const omitAttributes = (visit: VisitRecord, ...attributes: ReadonlyArray<keyof VisitRecord>): VisitRecord => {
  const rest = { ...visit }
  for (const attribute of attributes) delete rest[attribute]
  return rest
}

/** A full name is not to be populated beside its parts; the parts win where they are complete. */
const chooseNameForm = (visit: VisitRecord): VisitRecord => {
  const { name, firstName, middleName, lastName } = visit
  if (name == null || (firstName == null && middleName == null && lastName == null)) return visit
  return firstName != null && lastName != null
    ? omitAttributes(visit, 'name')
    : omitAttributes(visit, 'firstName', 'middleName', 'lastName')
}

/** medicalRecordId takes precedence where both ids are given. */
const choosePatientId = (visit: VisitRecord): VisitRecord =>
  visit.customerUniqueId == null || visit.medicalRecordId == null ? visit : omitAttributes(visit, 'customerUniqueId')

const formatMissing = (visit: VisitRecord, isNamed: boolean): string =>
  [...(isNamed ? [] : ['name']), ...requiredAttributes.filter((attribute) => visit[attribute] == null)]
    .map((attribute) => `${attribute} is missing`)
    .join('; ')

/** A visit, its time in UTC, as the service wants it; a Left says by attribute why it is not sent. Times in milliseconds. */
export const normalizeVisit = (
  mapped: VisitRecord,
  { now, maxAge }: { readonly now: number; readonly maxAge: number },
): E.Either<string, VisitRecord> => {
  const visit = choosePatientId(chooseNameForm(mapped))
  const isNamed = visit.name != null || visit.firstName != null || visit.lastName != null
  if (!isNamed || requiredAttributes.some((attribute) => visit[attribute] == null))
    return E.left(formatMissing(visit, isNamed))
  return visit.visitTime != null && now - Date.parse(visit.visitTime) > maxAge
    ? E.left(`visitTime is older than max_visit_age_days (${maxAge / dayMillis})`)
    : E.right(visit)
}

/** The languages that need no mapping at the service (Visit record, languageValue). */
const builtInLanguages = new Set(['en', 'es', 'de', 'fr', 'pt', 'zh', 'ko', 'vi', 'hi'])

export const isBuiltInLanguage = (language: string): boolean => builtInLanguages.has(language)
