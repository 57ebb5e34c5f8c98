import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as fc from 'fast-check'
import * as E from 'fp-ts/Either'
import { describe, expect, it } from 'vitest'
import type { Failure } from '../../connector/cdk/failure'
import { readJsonFile } from '../../connector/cdk/load'
import { findSecrets } from '../../connector/cdk/redact'
import type { JsonSchema } from '../../connector/cdk/schema'
import { destinationFormat } from '../../connector/cli/destination-format'
import { sourceFormat } from '../../connector/config/source'
import { valueFor } from '../support/arbitrary'

const seed = 20261121

type Reader = readonly [string, JsonSchema, (value: unknown) => E.Either<Failure, unknown>]

describe.each<Reader>([
  ['source', sourceFormat.spec, sourceFormat.decode],
  ['destination', destinationFormat.spec, destinationFormat.decode],
])('the reader of the configuration of the %s', (_, spec, read) => {
  it(`reads or refuses whatever it is given, by key and without a secret (seed ${seed})`, () => {
    const any = fc.oneof({ weight: 3, arbitrary: valueFor(spec, 3) }, fc.jsonValue(), fc.anything())
    fc.assert(
      fc.property(any, (value) => {
        const answer = read(value)
        if (E.isRight(answer)) return
        const { _tag, message } = answer.left
        expect(_tag).toBe('Config')
        expect(message).toMatch(/^The config is wrong: .+\.$/s)
        for (const secret of findSecrets(spec, value).filter((text) => text.length > 12))
          expect(message.includes(secret)).toBe(false)
      }),
      { seed, numRuns: 1500 },
    )
  })

  it('reads or refuses a file of any bytes, by place or key and without a secret', async () => {
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
        async (json, value, wounds) => {
          const twice = json.startsWith('{"') ? `{"page_size":${value},"x":"${secret}",${json.slice(1)}` : json
          const bytes = wounds.reduce((all, [at, byte]) => {
            const place = at % (all.length + 1)
            return Buffer.concat([all.subarray(0, place), Buffer.of(byte), all.subarray(place)])
          }, Buffer.from(twice))
          writeFileSync(path, bytes)
          const parsed = await readJsonFile('config', path)()
          const answer = E.isLeft(parsed) ? parsed : read(parsed.right)
          if (E.isRight(answer)) return
          expect(answer.left._tag).toBe('Config')
          expect(answer.left.message).toMatch(
            /^The config (is wrong: .+|file .+ is not (JSON: .+|UTF-8\. Save it as such))\.$/s,
          )
          expect(answer.left.message).not.toContain(secret)
        },
      ),
      { seed, numRuns: 700 },
    )
  })

  it('bears depth', () => {
    const deep = JSON.parse(`${'{"a":'.repeat(2000)}1${'}'.repeat(2000)}`)
    expect(E.isLeft(read(deep))).toBe(true)
    expect(E.isLeft(read({ base_url: deep, credentials: deep, rate_limit: deep }))).toBe(true)
  })
})
