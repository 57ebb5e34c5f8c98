import * as t from 'io-ts'
import { annotate } from '../../cdk'
import { describeAttribute, Integer, optionalAttributes } from './scalar'

/**
 * A visit in the body of `createVisitRecords`. All attributes are optional here, since the service reports a record without a
 * required one as Error.
 */
export const VisitRecord = annotate({ required: ['email', 'locationCode', 'npi'] })(
  optionalAttributes({
    name: describeAttribute('Full name; not with firstName, middleName and lastName')(t.string),
    firstName: describeAttribute('First name')(t.string),
    middleName: describeAttribute('Middle name')(t.string),
    lastName: describeAttribute('Last name')(t.string),
    email: describeAttribute('E-mail address')(t.string),
    phone: describeAttribute('Telephone number')(t.string),
    age: describeAttribute('Age in years')(Integer),
    address: describeAttribute('Address')(t.string),
    zipCode: describeAttribute('Postal code')(t.string),
    customerUniqueId: describeAttribute('Unique customer id; may equal medicalRecordId')(t.string),
    medicalRecordId: describeAttribute('Medical record number; takes precedence over customerUniqueId')(t.string),
    visitTime: describeAttribute('When the visit was, ISO 8601; used for campaign timing')(t.string),
    visitRecordId: describeAttribute('Unique id of the visit; makes the event idempotent')(t.string),
    locationName: describeAttribute('Name of the hospital, restaurant, hotel and so on')(t.string),
    locationCode: describeAttribute('Location code agreed with the operator of the service')(t.string),
    npi: describeAttribute('National provider identifier of the physician')(t.string),
    dataFeedId: describeAttribute('API feed that the record belongs to')(Integer),
    languageValue: describeAttribute('en, es, de, fr, pt, zh, ko, vi, hi; others need a mapping')(t.string),
  }),
)
export type VisitRecord = t.TypeOf<typeof VisitRecord>

/** Response of `createVisitRecords`: `records` has the visitRecordIds as keys. */
export const VisitRecordResult = t.intersection(
  [
    t.type({
      records: describeAttribute('Success or Error per visitRecordId')(
        annotate({ type: 'object', additionalProperties: { type: 'string' } })(t.record(t.string, t.string)),
      ),
    }),
    optionalAttributes({
      status: optionalAttributes({
        code: annotate({ type: ['integer', 'string'] })(t.union([t.number, t.string])),
        message: t.string,
      }),
    }),
  ],
  'VisitRecordResult',
)
export type VisitRecordResult = t.TypeOf<typeof VisitRecordResult>
