import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as fc from 'fast-check'
import * as E from 'fp-ts/Either'
import { describe, expect, it } from 'vitest'
import { readJsonFile } from '../../connector/cdk/config/files'
import type { Failure } from '../../connector/cdk/failure'
import { findSecrets } from '../../connector/cdk/redact'
import type { JsonSchema } from '../../connector/cdk/schema'
import { destinationFormat } from '../../connector/cli/feedback-destination'
import { sourceFormat } from '../../connector/config/source'
import { valueFor } from '../support/arbitrary'
import { draws } from '../support/draws'

type Decoder = readonly [string, JsonSchema, (value: unknown) => E.Either<Failure, unknown>]

describe.each<Decoder>([
  ['source', sourceFormat.spec, sourceFormat.decode],
  ['destination', destinationFormat.spec, destinationFormat.decode],
])('the decoder of the configuration of the %s', (_, spec, decode) => {
  it('decodes or refuses any value, with the wrong keys and without a secret', () => {
    let refused = 0
    const any = fc.oneof({ weight: 3, arbitrary: valueFor(spec, 3) }, fc.jsonValue(), fc.anything())
    let secretCount = 0
    fc.assert(
      fc.property(any, (value) => {
        const decoded = decode(value)
        if (E.isRight(decoded)) return
        refused += 1
        const { _tag, message } = decoded.left
        expect(_tag).toBe('Config')
        expect(message).toMatch(/^The config is wrong: .+[.?]$/s)
        for (const secret of findSecrets(spec, value).filter((text) => text.length > 12)) {
          secretCount += 1
          expect(message.includes(secret)).toBe(false)
        }
      }),
      draws(1500),
    )
    expect(refused).toBeGreaterThan(500)
    expect(secretCount).toBeGreaterThan(100)
  })

  it('decodes or refuses a file of any bytes, with the position or the wrong keys and without a secret', async () => {
    let refused = 0
    const secret = 's3cret-of-the-file'
    const text = valueFor(spec, 3).map((value) => JSON.stringify(value) ?? 'null')
    const awkward = fc.constantFrom(
      '1e400',
      '9007199254740993',
      '"\\ud800"',
      '{"base_url":1,"base_url":2}',
      '"\\u0000"',
    )
    const path = join(mkdtempSync(join(tmpdir(), 'config-')), 'config.json')
    await fc.assert(
      fc.asyncProperty(
        text,
        awkward,
        fc.array(fc.tuple(fc.nat(), fc.constantFrom(...Buffer.from('{}[]",:\\0a'), 0, 0x80, 0xc3, 0xff)), {
          maxLength: 3,
        }),
        async (json, value, insertions) => {
          const twice = json.startsWith('{"') ? `{"page_size":${value},"x":"${secret}",${json.slice(1)}` : json
          const bytes = insertions.reduce((all, [offset, byte]) => {
            const index = offset % (all.length + 1)
            return Buffer.concat([all.subarray(0, index), Buffer.of(byte), all.subarray(index)])
          }, Buffer.from(twice))
          writeFileSync(path, bytes)
          const parsed = await readJsonFile('config', path)()
          const decoded = E.isLeft(parsed) ? parsed : decode(parsed.right)
          if (E.isRight(decoded)) return
          refused += 1
          expect(decoded.left._tag).toBe('Config')
          expect(decoded.left.message).toMatch(
            /^The config (is wrong: .+|file .+ is not (JSON: .+|UTF-8\. Save it as UTF-8))[.?]$/s,
          )
          expect(decoded.left.message).not.toContain(secret)
        },
      ),
      draws(700),
    )
    expect(refused).toBeGreaterThan(300)
  })

  it('refuses a deeply nested value', () => {
    const deep = JSON.parse(`${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}`)
    expect(E.isLeft(decode(deep))).toBe(true)
    expect(E.isLeft(decode({ base_url: deep, credentials: deep, rate_limit: deep }))).toBe(true)
  })
})
