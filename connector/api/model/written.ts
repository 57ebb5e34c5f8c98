import * as t from 'io-ts'
import { annotate, Instant, Int64, Integer } from '../../cdk'
import { describeAttribute, optionalAttributes } from './scalar'

/** The attributes of a location both when it is written and when it is listed. */
const contactAttributes = {
  internalName: describeAttribute('Internal name')(t.string),
  phone: describeAttribute('Telephone number')(t.string),
  email: describeAttribute('E-mail address')(t.string),
  website: describeAttribute('Web site')(t.string),
  address1: describeAttribute('First address line')(t.string),
  address2: describeAttribute('Second address line')(t.string),
  city: describeAttribute('City')(t.string),
  state: describeAttribute('State or region')(t.string),
  zip: describeAttribute('Postal code')(t.string),
  country: describeAttribute('Country')(t.string),
}

/**
 * A location in the body of `syncLocations`; the service's specification does not say which attributes are required.
 */
export const Location = optionalAttributes({
  code: describeAttribute('Location code or identifier')(t.string),
  codeType: describeAttribute('Type of the code')(t.string),
  active: describeAttribute('true creates or updates the location; false deactivates it')(t.boolean),
  name: describeAttribute('Display name')(t.string),
  ...contactAttributes,
  profiles: describeAttribute('Its profiles at sources')(
    t.readonlyArray(
      optionalAttributes({
        sourceName: describeAttribute('Name of the source')(t.string),
        url: describeAttribute('Address of the profile')(t.string),
        id: describeAttribute('Id of the profile at the source')(t.string),
      }),
    ),
  ),
  products: describeAttribute('Products to associate')(t.readonlyArray(t.unknown)),
  labels: describeAttribute('Labels to associate')(t.readonlyArray(t.unknown)),
  entityMappings: describeAttribute('External to internal mapping values')(t.UnknownRecord),
  additionalAttributes: describeAttribute('Free-form attributes')(t.UnknownRecord),
})

export type Location = t.TypeOf<typeof Location>

/** A location as published deployments list it (`lookupLocations`). Values of unknown structure are JSON text. */
export const ManagedLocation = optionalAttributes({
  id: describeAttribute('Identifier at the service')(Int64),
  displayName: describeAttribute('Display name')(t.string),
  ...contactAttributes,
  productMappings: describeAttribute('Associated products, as JSON text')(t.string),
  entityMappings: describeAttribute('External to internal mapping values, as JSON text')(t.string),
  additionalAttributes: describeAttribute('Free-form attributes, as JSON text')(t.string),
  labels: describeAttribute('Associated labels, as JSON text')(t.string),
  createdTime: describeAttribute('Creation')(Instant),
  modifiedTime: describeAttribute('Last modification')(Instant),
})

/** Response of `syncLocations`; the attributes of the items of `nonSyncableList` are not documented. */
export const LocationSyncResult = t.intersection(
  [
    t.type({ status: describeAttribute('SUCCESS or PARTIAL_SUCCESS')(t.string) }),
    optionalAttributes({
      message: describeAttribute('For people')(t.string),
      nonSyncableList: describeAttribute('Items that could not be processed')(t.readonlyArray(t.unknown)),
      totalRequests: describeAttribute('Items received')(Integer),
      successfulRequests: describeAttribute('Items accepted')(Integer),
      failedRequests: describeAttribute('Items that could not be processed')(Integer),
    }),
  ],
  'LocationSyncResult',
)

export type LocationSyncResult = t.TypeOf<typeof LocationSyncResult>

/**
 * A visit in the body of `createVisitRecords`. All attributes are optional here, because the service itself reports a
 * record without a required one as Error.
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
    visitTime: describeAttribute('Time of the visit, ISO 8601; used for campaign timing')(t.string),
    visitRecordId: describeAttribute('Unique id of the visit; makes the event idempotent')(t.string),
    locationName: describeAttribute('Name of the hospital, restaurant, hotel and so on')(t.string),
    locationCode: describeAttribute('Location code agreed with the operator of the service')(t.string),
    npi: describeAttribute('National provider identifier of the physician')(t.string),
    dataFeedId: describeAttribute('API feed that the record belongs to')(Integer),
    languageValue: describeAttribute('en, es, de, fr, pt, zh, ko, vi, hi; others need a mapping')(t.string),
  }),
)

export type VisitRecord = t.TypeOf<typeof VisitRecord>

/** Response of `createVisitRecords`. The keys of `records` are visitRecordIds. */
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
