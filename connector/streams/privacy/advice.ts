import * as O from 'fp-ts/Option'
import { allResourcePaths, privacyResources, streamRoot } from './resources'

const knownPaths = new Set(allResourcePaths)

/** What would be right in place of a path that does not exist. */
export const suggestPath = (path: string): string => {
  const [first = '', ...rest] = path.split('.')
  const root = streamRoot(first)
  const meant = O.isSome(root) ? root.value + rest.join('.') : `export.${path}`
  if (knownPaths.has(meant)) return `Write ${meant}`
  if (!(first in privacyResources))
    return `Paths begin with ${Object.keys(privacyResources).join(', ')}, such as export.contents.response`
  const parts = path.split('.')
  const depth = parts.findIndex((_, n) => n > 0 && !knownPaths.has(parts.slice(0, n + 1).join('.')))
  const parent = `${parts.slice(0, depth).join('.')}.`
  const siblings = allResourcePaths.flatMap((one) =>
    one.startsWith(parent) && !one.slice(parent.length).includes('.') ? [one.slice(parent.length)] : [],
  )
  return siblings.length === 0
    ? `${parent.slice(0, -1)} holds no attributes`
    : `${parent.slice(0, -1)} holds ${siblings.join(', ')}`
}
