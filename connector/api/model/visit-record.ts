import * as t from 'io-ts'
import { annotate } from '../../cdk/schema'
import { described, Integer, optional } from './scalar'

/** Visit record (Resources). The service reports a record without a required attribute as Error, so the type lets it pass. */
export const VisitRecord = annotate({ required: ['email', 'locationCode', 'npi'] })(
  optional({
    name: described('Full name; not with firstName, middleName and lastName')(t.string),
    firstName: described('First name')(t.string),
    middleName: described('Middle name')(t.string),
    lastName: described('Last name')(t.string),
    email: described('E-mail address')(t.string),
    phone: described('Telephone number')(t.string),
    age: described('Age in years')(Integer),
    address: described('Address')(t.string),
    zipCode: described('Postal code')(t.string),
    customerUniqueId: described('Unique customer id; may equal medicalRecordId')(t.string),
    medicalRecordId: described('Medical record number; takes precedence over customerUniqueId')(t.string),
    visitTime: described('When the visit was, ISO 8601; used for campaign timing')(t.string),
    visitRecordId: described('Unique id of the visit; makes the event idempotent')(t.string),
    locationName: described('Name of the hospital, restaurant, hotel and so on')(t.string),
    locationCode: described('Location code agreed with the operator of the service')(t.string),
    npi: described('National provider identifier of the physician')(t.string),
    dataFeedId: described('API feed that the record belongs to')(Integer),
    languageValue: described('en, es, de, fr, pt, zh, ko, vi, hi; others need a mapping')(t.string),
  }),
)
export type VisitRecord = t.TypeOf<typeof VisitRecord>

/** Outcome of operation 4: `records` has the visitRecordIds as keys. */
export const VisitRecordResult = t.intersection(
  [
    t.type({
      records: described('Success or Error per visitRecordId')(
        annotate({ type: 'object', additionalProperties: { type: 'string' } })(t.record(t.string, t.string)),
      ),
    }),
    optional({
      status: optional({
        code: annotate({ type: ['integer', 'string'] })(t.union([t.number, t.string])),
        message: t.string,
      }),
    }),
  ],
  'VisitRecordResult',
)
export type VisitRecordResult = t.TypeOf<typeof VisitRecordResult>
