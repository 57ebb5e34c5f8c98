import * as t from 'io-ts'
import { described, optional } from '../api/model/scalar'

/** What undeclared attributes of a record are collected in. */
export const Unknown = optional({
  unknown_attributes: described('Attributes the service sent that this version does not know, as they came')(
    t.UnknownRecord,
  ),
})
