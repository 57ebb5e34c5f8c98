import * as t from 'io-ts'
import { describeAttribute, optionalAttributes } from '../api'

/** How many undeclared attributes a stream names, since a service may send any number of them. */
const maxNamedAttributes = 20

/** Messages about undeclared attributes, each once. The last one says that there are more. */
export const collectUnknownAttributes = (): ((paths: ReadonlyArray<string>) => ReadonlyArray<string>) => {
  const named = new Set<string>()
  let isFull = false
  const nameAttribute = (path: string): ReadonlyArray<string> => {
    if (isFull || named.has(path)) return []
    isFull = named.size === maxNamedAttributes
    if (isFull) return ['The service sent more attributes this version does not know; they are not named here.']
    named.add(path)
    return [`The service sent an attribute this version does not know: ${path}.`]
  }
  return (paths) => paths.flatMap(nameAttribute)
}

/** The member of a record that collects its undeclared attributes. */
export const UnknownAttributes = optionalAttributes({
  unknown_attributes: describeAttribute('Attributes the service sent that this version does not know, as they came')(
    t.UnknownRecord,
  ),
})
