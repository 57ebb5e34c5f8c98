import * as fc from 'fast-check'
import * as E from 'fp-ts/Either'
import { describe, expect, it } from 'vitest'
import { decodeConfiguredCatalog } from '../../connector/cdk/airbyte/catalog'
import { parseJson } from '../../connector/cdk/json/parse'
import { decodeAirbyteState, decodeSingerState as readSingerState } from '../../connector/cdk/state-file'
import { draws } from '../support/draws'

/** JSON values made of the words that states and catalogs are made of. */
const value = fc.letrec((tie) => ({
  leaf: fc.oneof(fc.constantFrom(null, true, 0, -1, 1e308, '', 'STREAM', 'STATE', 'reviews', '\ud800'), fc.string()),
  node: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    tie('leaf'),
    fc.array(tie('node'), { maxLength: 3 }),
    fc.dictionary(
      fc.constantFrom(
        'type',
        'state',
        'stream',
        'streams',
        'stream_descriptor',
        'name',
        'stream_state',
        'global',
        'stream_states',
        'data',
        'bookmarks',
        'value',
        'currently_syncing',
        'sync_mode',
        '__proto__',
        'x',
      ),
      tie('node'),
      { maxKeys: 5 },
    ),
  ),
})).node

describe('states and catalogs of any form', () => {
  it.each<[string, (value: unknown) => E.Either<{ readonly _tag: string; readonly message: string }, unknown>]>([
    ['state', decodeAirbyteState],
    ['catalog', decodeConfiguredCatalog('source')],
    ['Singer state', readSingerState],
  ])('a %s is decoded, or refused with the problem, and is not changed', (_, read) => {
    const counts = { read: 0, refused: 0 }
    fc.assert(
      fc.property(value, (any) => {
        const before = JSON.stringify(any)
        const answer = read(any)
        counts[E.isLeft(answer) ? 'refused' : 'read'] += 1
        if (E.isLeft(answer)) {
          expect(answer.left._tag).toBe('Config')
          expect(answer.left.message).toMatch(/^The (state|catalog) is wrong: .+\.$/)
        }
        expect(JSON.stringify(any)).toBe(before)
        expect(Object.getPrototypeOf({})).toBe(Object.prototype)
      }),
      draws(3000),
    )
    expect(counts.read).toBeGreaterThan(5)
    expect(counts.refused).toBeGreaterThan(1000)
  })

  it('a printed state is decoded as it was', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string({ minLength: 1 }), fc.dictionary(fc.string(), fc.jsonValue(), { minKeys: 1 }), {
          maxKeys: 3,
        }),
        (states) => {
          const printed = Object.entries(states).map(([name, stream_state]) => ({
            type: 'STREAM',
            stream: { stream_descriptor: { name }, stream_state },
          }))
          expect(decodeAirbyteState(JSON.parse(JSON.stringify(printed)))).toEqual(
            E.right(JSON.parse(JSON.stringify(states))),
          )
        },
      ),
      draws(500),
    )
  })

  it('text that is not JSON is reported by its position, without a quote', () => {
    let refusedCount = 0
    fc.assert(
      fc.property(fc.json(), fc.nat(), fc.string({ minLength: 1, maxLength: 3 }), (json, at, more) => {
        const place = at % (json.length + 1)
        const answer = parseJson(json.slice(0, place) + more + json.slice(place))
        if (E.isRight(answer)) return
        refusedCount += 1
        expect(answer.left).toMatch(/^is not JSON: (it ends too early or is empty|it breaks at line \d+, column \d+)$/)
      }),
      draws(1000),
    )
    expect(refusedCount).toBeGreaterThan(300)
  })
})
