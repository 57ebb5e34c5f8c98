import { describe, expect, it } from 'vitest'
import { destinationFormat } from '../../connector/cli/feedback-destination'
import { sourceFormat } from '../../connector/config/source'

describe.each([
  ['source', sourceFormat.spec],
  ['destination', destinationFormat.spec],
])('spec/%s.json', (name, spec) => {
  it('is the schema of the codec', async () => {
    await expect(`${JSON.stringify(spec, null, 2)}\n`).toMatchFileSnapshot(`../../spec/${name}.json`)
  })

  const walk = (schema: unknown, path: string): ReadonlyArray<readonly [string, Record<string, unknown>]> => {
    if (typeof schema !== 'object' || schema === null) return []
    const inner = Object.entries(schema).flatMap(([key, value]) => walk(value, `${path}/${key}`))
    return path.split('/').at(-2) === 'properties' ? [[path, schema as Record<string, unknown>], ...inner] : inner
  }
  const settings = walk(spec, '')

  it('gives every key a title, a description and its order', () => {
    for (const [path, setting] of settings)
      expect(setting, path).toMatchObject({
        title: expect.any(String),
        description: expect.any(String),
        order: expect.any(Number),
      })
  })

  it('marks every secret and shows an example of every value', () => {
    for (const [path, setting] of settings) {
      if (/token$|secret$/.test(path)) expect(setting, path).toMatchObject({ airbyte_secret: true, writeOnly: true })
      if (setting.type !== 'object' && !('const' in setting)) expect(setting, path).toHaveProperty('examples')
    }
  })

  it('has no anyOf, allOf, not, nor a property with several types', () => {
    expect(JSON.stringify(spec)).not.toMatch(/"(anyOf|allOf|not)":/)
    for (const [path, { type }] of settings) expect(typeof type, path).toBe('string')
  })
})
