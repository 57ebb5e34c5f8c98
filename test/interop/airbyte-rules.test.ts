import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { sinks } from '../../connector/sinks'
import { schemaProperties } from '../support/schema-walk'
import { airbyteConnectors, brokenConnectors } from './airbyte-connectors'
import { airbyteRules, foreignRules, plainHttp } from './airbyte-rules'

describe.each(airbyteConnectors.map((connector) => [connector.kind, connector] as const))(
  'Airbyte’s quality rules for the %s',
  (_, connector) => {
    it.each(airbyteRules.map(({ name, find }) => [name, find] as const))('%s', (__, find) => {
      expect(find(connector)).toEqual([])
    })

    it.each(brokenConnectors.map(({ rule, what, spoil }) => [rule, what, spoil] as const))(
      '“%s” finds %s',
      (rule, _what, spoil) => {
        const found = airbyteRules.find(({ name }) => name === rule)?.find(spoil(connector))
        expect(found?.length).toBeGreaterThan(0)
      },
    )
  },
)

it('each rule finds something that is broken', () => {
  expect([...new Set(brokenConnectors.map(({ rule }) => rule))].sort()).toEqual(
    airbyteRules.map(({ name }) => name).sort(),
  )
})

it('plain http stays only where it is said why', () => {
  const files = airbyteConnectors[0]?.files
  expect(plainHttp.filter(({ path, text }) => files?.get(path)?.includes(text) !== true)).toEqual([])
})

describe.each(airbyteConnectors.map((connector) => [connector.kind, connector] as const))(
  'the metadata of the %s',
  (kind, { metadata, page = '' }) => {
    const { data } = parse(metadata)

    it('leads to its page, and to the diagram on it', () => {
      expect(data.documentationUrl).toBe(`https://docs.airbyte.com/integrations/${kind}s/feedback`)
      if (kind === 'destination') return
      const [address, anchor] = data.erdUrl.split('#')
      const anchors = [...page.matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
        heading.toLowerCase().replaceAll(' ', '-'),
      )
      expect([address, anchors]).toEqual([data.documentationUrl, expect.arrayContaining([anchor])])
      expect(page).toMatch(/^```mermaid\nerDiagram$/m)
    })

    it('writes to the service if it is a destination, and is released on the day of its changelog', () => {
      expect(data.supportsDataActivation).toBe(kind === 'destination' ? true : undefined)
      const [, , released] = [...page.matchAll(/^\| (\d+\.\d+\.\d+) \| (\d{4}-\d\d-\d\d) \|/gm)].at(-1) ?? []
      expect(data.releaseDate).toBe(released)
    })

    it('is in the registry that its page sends people to', () => {
      expect(data.registryOverrides).toEqual({ oss: { enabled: true }, cloud: { enabled: false } })
      expect(page).toMatch(/### For Airbyte Cloud:\n\nAirbyte Cloud runs the connectors of its registry only/)
    })
  },
)

it('the example address of the metadata is that of the specification', () => {
  const [source] = airbyteConnectors
  const { examples } = schemaProperties(source?.spec ?? {}).base_url ?? {}
  const urls = parse(source?.metadata ?? '').data.externalDocumentationUrls.map(({ url }: { url: string }) => url)
  expect(urls).toContain((examples as ReadonlyArray<string>)[0])
})

it('the page of the destination has each object with its operations and keys', () => {
  const page = airbyteConnectors.find(({ kind }) => kind === 'destination')?.page ?? ''
  const operations = [...page.matchAll(/^\| `(\w+)` \| (append|update|soft_delete) \| /gm)].map(([, ...row]) =>
    row.join(' '),
  )
  expect(operations.sort()).toEqual(
    sinks.flatMap((sink) => sink.operations.map((operation) => `${sink.name} ${operation}`)).sort(),
  )
  const formatKeys = (keys: ReadonlyArray<ReadonlyArray<string>>) =>
    keys.map((key) => key.map((attribute) => `\`${attribute}\``).join(' and ')).join(', or ') || 'nothing to choose'
  for (const { name, matchingKeys } of sinks) expect(page).toContain(`| \`${name}\` | ${formatKeys(matchingKeys)} | `)
})

it('docs/airbyte.md lists each rule that cannot pass as written or has no meaning here, and why', async () => {
  const path = join(__dirname, '..', '..', 'docs', 'airbyte.md')
  const rows = [
    ...airbyteRules.flatMap(({ name, otherwise, failsAsWritten }) =>
      failsAsWritten === undefined
        ? []
        : [`| ${name} | passes here, not as written | ${[failsAsWritten, otherwise].filter(Boolean).join('; ')} |`],
    ),
    ...Object.entries(foreignRules).map(([name, why]) => `| ${name} | does not apply | ${why} |`),
  ]
  const text = readFileSync(path, 'utf8').replace(
    /(\| rule \| [^\n]*\n\| --- [^\n]*\n)(\|.*\n)*/,
    `$1${rows.join('\n').replaceAll('$', '$$$$')}\n`,
  )
  await expect(text).toMatchFileSnapshot(path)
})
