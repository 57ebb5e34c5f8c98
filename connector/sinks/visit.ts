import * as E from 'fp-ts/Either'
import type { VisitRecord } from '../api/model/visit-record'

const day = 86_400_000

/** Attributes without which the service takes no visit (Visit record). */
const required = ['email', 'locationCode', 'npi'] as const

const without = (visit: VisitRecord, ...attributes: ReadonlyArray<keyof VisitRecord>): VisitRecord => {
  const rest = { ...visit }
  for (const attribute of attributes) delete rest[attribute]
  return rest
}

/** A full name is not to be populated beside its parts; the parts win where they are complete. */
const named = (visit: VisitRecord): VisitRecord => {
  const { name, firstName, middleName, lastName } = visit
  if (name == null || (firstName == null && middleName == null && lastName == null)) return visit
  return firstName != null && lastName != null
    ? without(visit, 'name')
    : without(visit, 'firstName', 'middleName', 'lastName')
}

/** medicalRecordId takes precedence where both ids are given. */
const identified = (visit: VisitRecord): VisitRecord =>
  visit.customerUniqueId == null || visit.medicalRecordId == null ? visit : without(visit, 'customerUniqueId')

const missingIn = (visit: VisitRecord, isNamed: boolean): string =>
  [...(isNamed ? [] : ['name']), ...required.filter((attribute) => visit[attribute] == null)]
    .map((attribute) => `${attribute} is missing`)
    .join('; ')

/** A visit, its time in UTC, as the service wants it; a Left says by attribute why it is not sent. Times in milliseconds. */
export const toVisit = (
  mapped: VisitRecord,
  { now, maxAge }: { readonly now: number; readonly maxAge: number },
): E.Either<string, VisitRecord> => {
  const visit = identified(named(mapped))
  const isNamed = visit.name != null || visit.firstName != null || visit.lastName != null
  if (!isNamed || required.some((attribute) => visit[attribute] == null)) return E.left(missingIn(visit, isNamed))
  return visit.visitTime != null && now - Date.parse(visit.visitTime) > maxAge
    ? E.left(`visitTime is older than max_visit_age_days (${maxAge / day})`)
    : E.right(visit)
}

/** The languages that need no mapping at the service (Visit record, languageValue). */
const languages = new Set(['en', 'es', 'de', 'fr', 'pt', 'zh', 'ko', 'vi', 'hi'])

export const mapsByItself = (language: string): boolean => languages.has(language)
