import * as E from 'fp-ts/Either'
import { toMillis } from '../api/model/scalar'
import type { VisitRecord } from '../api/model/visit-record'

const day = 86_400_000

/** Attributes without which the service takes no visit (Visit record). */
const required = ['email', 'locationCode', 'npi'] as const

/** A full name is not to be populated beside its parts; the parts win where they are complete. */
const named = ({ name, firstName, middleName, lastName, ...rest }: VisitRecord): VisitRecord => {
  const parts = {
    ...(firstName == null ? {} : { firstName }),
    ...(middleName == null ? {} : { middleName }),
    ...(lastName == null ? {} : { lastName }),
  }
  const whole = name != null && !('firstName' in parts && 'lastName' in parts)
  return whole ? { ...rest, name } : { ...rest, ...parts }
}

/** medicalRecordId takes precedence where both ids are given. */
const identified = ({ customerUniqueId, ...visit }: VisitRecord): VisitRecord =>
  customerUniqueId == null || visit.medicalRecordId != null ? visit : { ...visit, customerUniqueId }

/** A visit as the service wants it; a Left says by attribute why it is not sent. Times in milliseconds. */
export const toVisit = (
  mapped: VisitRecord,
  { now, maxAge }: { readonly now: number; readonly maxAge: number },
): E.Either<string, VisitRecord> => {
  const visit = identified(named(mapped))
  const missing: ReadonlyArray<string> = [
    ...(visit.name == null && visit.firstName == null && visit.lastName == null ? ['name'] : []),
    ...required.filter((attribute) => visit[attribute] == null),
  ]
  if (missing.length > 0) return E.left(missing.map((attribute) => `${attribute} is missing`).join('; '))
  return visit.visitTime != null && now - toMillis(visit.visitTime) > maxAge
    ? E.left(`visitTime is older than max_visit_age_days (${maxAge / day})`)
    : E.right(visit)
}

/** The languages that need no mapping at the service (Visit record, languageValue). */
const languages = new Set(['en', 'es', 'de', 'fr', 'pt', 'zh', 'ko', 'vi', 'hi'])

export const mapsByItself = (language: string): boolean => languages.has(language)
