import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { declaredStreams } from '../../connector/streams/streams'
import { docsFolder } from '../support/doc-blocks'
import { schemaProperties } from '../support/schema-walk'
import { entityDiagram, relations } from './entity-diagram'

const page = 'integrations/sources/feedback.md'

it('the diagram of the documentation page is that of the streams', async () => {
  const text = readFileSync(join(docsFolder, page), 'utf8')
  const drawn = text.replace(/^```mermaid\n[\s\S]*?^```$/m, `\`\`\`mermaid\n${entityDiagram(declaredStreams)}\n\`\`\``)
  expect(drawn.match(/^```mermaid$/gm)).toHaveLength(1)
  await expect(drawn).toMatchFileSnapshot(`../../docs/${page}`)
})

it('each edge names attributes that the streams declare', () => {
  const schemas = Object.fromEntries(declaredStreams.map(({ name, schema }) => [name, schema]))
  const ends = relations.flatMap(({ from, fromAttributes, to, toAttributes }) => [
    ...fromAttributes.map((path) => [from, path] as const),
    ...toAttributes.map((path) => [to, path] as const),
  ])
  const undeclared = ends.filter(([stream, path]) => {
    const [attribute = '', inner] = path.split('.')
    const declared = schemaProperties(schemas[stream] ?? {})[attribute]
    return declared === undefined || (inner !== undefined && !(inner in schemaProperties(declared)))
  })
  expect(undeclared).toEqual([])
})

it('each attribute that holds the id of another stream begins an edge', () => {
  const named: Readonly<Record<string, string>> = { reviewId: 'reviews', contentId: 'review_contents' }
  const missing = declaredStreams.flatMap(({ name, schema }) =>
    Object.keys(schemaProperties(schema)).filter(
      (attribute) =>
        named[attribute] !== undefined &&
        !relations.some(({ to, toAttributes }) => to === name && toAttributes.includes(attribute)),
    ),
  )
  expect(missing).toEqual([])
})
