import * as O from 'fp-ts/Option'
import { describe, expect, it } from 'vitest'
import { describeAirbyteStream } from '../../connector/cdk/airbyte/catalog'
import type { JsonSchema } from '../../connector/cdk/schema'
import { declaredStreams as streams } from '../../connector/streams/streams'

type AttributeSchema = {
  readonly type?: unknown
  readonly description?: unknown
  readonly properties?: Record<string, JsonSchema>
}

describe.each(streams.map((stream) => [stream.name, stream] as const))('%s', (name, stream) => {
  const properties = (stream.schema.properties ?? {}) as Record<string, JsonSchema>

  it('has the schema in catalog/ that follows from its codec', async () => {
    await expect(`${JSON.stringify(describeAirbyteStream(stream), null, 2)}\n`).toMatchFileSnapshot(
      `../../catalog/${name}.json`,
    )
  })

  it('has required keys and cursor, each a string or an integer', () => {
    const cursor = O.isSome(stream.cursor) ? [stream.cursor.value] : []
    expect(stream.primaryKey.length).toBeGreaterThan(0)
    for (const key of [...stream.primaryKey, ...cursor])
      expect(properties[key]?.type, key).toMatch(/^(string|integer)$/)
    expect(stream.schema.required).toEqual(expect.arrayContaining([...stream.primaryKey, ...cursor]))
  })

  it('gives type and meaning of every attribute, under names that Singer targets accept', () => {
    const walk = ({ type, properties }: AttributeSchema, path: string): void => {
      expect(type, path).toBeDefined()
      for (const [key, inner] of Object.entries(properties ?? {})) walk(inner, `${path}.${key}`)
    }
    walk(stream.schema, name)
    for (const [key, { description }] of Object.entries(properties))
      expect(description, key).toEqual(expect.any(String))
    const lowerCaseNames = Object.keys(properties).map((key) => key.toLowerCase())
    expect(new Set(lowerCaseNames).size).toBe(lowerCaseNames.length)
    expect(name).toMatch(/^[a-z_]+$/)
    expect(JSON.stringify(stream.schema)).not.toMatch(/"(anyOf|allOf|oneOf|\$ref)":/)
  })
})
