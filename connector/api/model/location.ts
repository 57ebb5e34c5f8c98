import * as t from 'io-ts'
import { described, Integer, optional } from './scalar'

/** Location (sync request element, Resources); which attributes are required is not shown. */
export const Location = optional({
  code: described('Location code or identifier')(t.string),
  codeType: described('Type of the code')(t.string),
  active: described('true creates or updates the location; false deactivates it')(t.boolean),
  name: described('Display name')(t.string),
  internalName: described('Internal name')(t.string),
  phone: described('Telephone number')(t.string),
  email: described('E-mail address')(t.string),
  website: described('Web site')(t.string),
  address1: described('First address line')(t.string),
  address2: described('Second address line')(t.string),
  city: described('City')(t.string),
  state: described('State or region')(t.string),
  zip: described('Postal code')(t.string),
  country: described('Country')(t.string),
  profiles: described('Its profiles at sources')(
    t.readonlyArray(
      optional({
        sourceName: described('Name of the source')(t.string),
        url: described('Address of the profile')(t.string),
        id: described('Id of the profile at the source')(t.string),
      }),
    ),
  ),
  products: described('Products to associate')(t.readonlyArray(t.unknown)),
  labels: described('Labels to associate')(t.readonlyArray(t.unknown)),
  entityMappings: described('External to internal mapping values')(t.UnknownRecord),
  additionalAttributes: described('Free-form attributes')(t.UnknownRecord),
})
export type Location = t.TypeOf<typeof Location>

/** Location sync result (Resources); the attributes of the items of `nonSyncableList` are not shown. */
export const LocationSyncResult = t.intersection(
  [
    t.type({ status: described('SUCCESS or PARTIAL_SUCCESS')(t.string) }),
    optional({
      message: described('For people')(t.string),
      nonSyncableList: described('Items that could not be processed')(t.readonlyArray(t.unknown)),
      totalRequests: described('Items received')(Integer),
      successfulRequests: described('Items accepted')(Integer),
      failedRequests: described('Items that could not be processed')(Integer),
    }),
  ],
  'LocationSyncResult',
)
export type LocationSyncResult = t.TypeOf<typeof LocationSyncResult>
