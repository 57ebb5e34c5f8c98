import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import { describe, expect, it } from 'vitest'
import { decodeAirbyteState, decodeSingerState } from '../../connector/cdk/state-file'

const state = { modifiedTimeFrom: '2024-01-01T00:00:00.000Z' }
const value = { bookmarks: { reviews: state, other: {} }, currently_syncing: 'reviews', version: 2 }
const airbyteState = [{ type: 'STREAM', stream: { stream_descriptor: { name: 'reviews' }, stream_state: state } }]

describe('decodeSingerState', () => {
  it.each<[string, unknown]>([
    ['the value', value],
    ['a printed line', { type: 'STATE', value }],
    [
      'printed lines, the last of which wins',
      [
        { type: 'STATE', value: { bookmarks: { reviews: { a: 1 } } } },
        { type: 'STATE', value },
      ],
    ],
    ['what meltano state get prints', { singer_state: value }],
    ['the value as text', JSON.stringify(value)],
    ['a value within as text', { singer_state: JSON.stringify(value) }],
    ['bookmarks as text', { ...value, bookmarks: JSON.stringify(value.bookmarks) }],
    ['a bookmark as text', { ...value, bookmarks: { ...value.bookmarks, reviews: JSON.stringify(state) } }],
  ])('reads %s', (_, given) => {
    expect(decodeSingerState(given)).toEqual(
      E.right({ value: value, bookmarks: { reviews: state }, currentlySyncing: O.some('reviews') }),
    )
  })

  it.each<[string, unknown]>([
    ['null', null],
    ['{}', {}],
    ['[]', []],
    ['a state of nothing', { type: 'STATE', value: null }],
  ])('takes %s for no state', (_, given) => {
    expect(decodeSingerState(given)).toEqual(E.right({ value: {}, bookmarks: {}, currentlySyncing: O.none }))
  })

  it('reads a state of the Airbyte source', () => {
    expect(decodeSingerState(airbyteState)).toMatchObject(
      E.right({ bookmarks: { reviews: state }, value: { bookmarks: { reviews: state } } }),
    )
  })

  it('keeps unknown members', () => {
    expect(decodeSingerState({ currently_syncing: null, bookmarks: null, mine: 1 })).toEqual(
      E.right({
        value: { currently_syncing: null, bookmarks: null, mine: 1 },
        bookmarks: {},
        currentlySyncing: O.none,
      }),
    )
  })

  it('refuses text', () => {
    expect(E.isLeft(decodeSingerState('x'))).toBe(true)
  })
})

describe('decodeAirbyteState', () => {
  it.each<[string, unknown]>([
    ['value', value],
    ['line', { type: 'STATE', value }],
    ['lines', [{ type: 'STATE', value }]],
  ])('reads the tap’s state as a %s', (_, given) => {
    expect(decodeAirbyteState(given)).toEqual(E.right({ reviews: state }))
  })
})
