import * as fc from 'fast-check'
import * as E from 'fp-ts/Either'
import { describe, expect, it } from 'vitest'
import type { Failure } from '../connector/cdk/failure'
import type { JsonSchema } from '../connector/cdk/schema'
import { secretsIn } from '../connector/cdk/secrets'
import { readConfig, sourceSpec } from '../connector/config'
import { destinationSpec, readDestinationConfig } from '../connector/destination-config'
import { valueFor } from './support/arbitrary'

const seed = 20261121

type Reader = readonly [string, JsonSchema, (value: unknown) => E.Either<Failure, unknown>]

describe.each<Reader>([
  ['source', sourceSpec, readConfig],
  ['destination', destinationSpec, readDestinationConfig],
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
        for (const secret of secretsIn(spec, value).filter((text) => text.length > 12))
          expect(message.includes(secret)).toBe(false)
      }),
      { seed, numRuns: 1500 },
    )
  })

  it('bears depth', () => {
    const deep = JSON.parse(`${'{"a":'.repeat(2000)}1${'}'.repeat(2000)}`)
    expect(E.isLeft(read(deep))).toBe(true)
    expect(E.isLeft(read({ base_url: deep, credentials: deep, rate_limit: deep }))).toBe(true)
  })
})
