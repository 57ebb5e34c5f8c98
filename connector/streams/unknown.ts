import * as t from 'io-ts'
import { describeAttribute, optionalAttributes } from '../api/model/scalar'

/** What undeclared attributes of a record are collected in. */
export const UnknownAttributes = optionalAttributes({
  unknown_attributes: describeAttribute('Attributes the service sent that this version does not know, as they came')(
    t.UnknownRecord,
  ),
})
