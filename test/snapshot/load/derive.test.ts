import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Message, Row } from '../../../connector/cdk/message'
import { hashContent } from '../../../connector/snapshot/diff'
import type { Snapshot } from '../../../connector/snapshot/store/database'
import { createReviewItem } from '../../../connector/streams/review-item'
import { streams } from '../../../connector/streams/streams'
import { draws } from '../../support/draws'
import { openMemoryLake, writeLakeMessages } from '../../support/lake'
import { cutRecords, isUndeclared } from '../../support/review-rows'
import {
  commitInParts,
  emittedAt,
  finishedMessage,
  openMemorySnapshot,
  writeMessages,
} from '../../support/snapshot-messages'

const derived = streams.filter(({ derivation }) => derivation !== undefined)
const infos = derived.map(({ name, schema, primaryKey, cursor, derivation }) => ({
  ...{ name, schema, primaryKey, cursor, syncMode: 'incremental' as const },
  ...(derivation === undefined ? {} : { derivation }),
}))
const started = infos.map((stream): Message => ({ _tag: 'Started', stream }))
const finished = infos.map(({ name }) => finishedMessage(name))

/** The same reviews, in pages, as one stream after the other sends their rows, and as they are sent once for all. */
const toMessages = (pages: ReadonlyArray<ReadonlyArray<string>>) => {
  const projectors = derived.map(({ name, projector }) => ({ name, project: projector() }))
  const cut = pages.map((texts) => cutRecords(...texts))
  const projected = cut.flatMap((records) => {
    const items = records.map(createReviewItem)
    return projectors.map(({ name, project }): Message => {
      const rows = items.flatMap((item): ReadonlyArray<Row> => project(item))
      return {
        _tag: 'Records',
        stream: name,
        at: emittedAt,
        rows: rows.map(({ json }) => ({ json: Buffer.from(json) })),
      }
    })
  })
  const shared = cut.map(
    (records, i): Message => ({
      ...{ _tag: 'SharedRecords', streams: infos.map(({ name }) => name), at: emittedAt },
      rows: records.map(({ json }) => ({ json: Buffer.from(json) })),
      hasUndeclared: isUndeclared(...(pages[i] ?? [])),
    }),
  )
  const waiting: Message = { _tag: 'Waiting', stream: 'reviews', until: 0 }
  return {
    projected: [...started, ...projected.flatMap((message) => [message, waiting]), ...finished],
    shared: [...started, ...shared.flatMap((message) => [message, waiting]), ...finished],
  }
}

const loadContent = async (messages: ReadonlyArray<Message>, options: { history: boolean; inParts?: boolean }) => {
  const snapshot = await openMemorySnapshot()
  try {
    await writeMessages(options.inParts ? commitInParts(snapshot) : snapshot, messages, options)
    return await hashContent(snapshot)
  } finally {
    snapshot.db.close()
  }
}

const id = fc.oneof(fc.integer({ min: 1, max: 3 }), fc.constantFrom(null, undefined))
const name = fc.constantFrom(
  null,
  undefined,
  '',
  ' ',
  '\u00a0',
  'Staff',
  'Wait > time',
  'a\\b',
  '>',
  'Caf\u00e9 \ud83d\ude00',
)
const extra = fc.constantFrom(
  {},
  {},
  { Question: 'other case' },
  { 'x.y': [1] },
  { _at: 1 },
  { reviewId: 5, position: 'own' },
)
const withExtra = <A extends object>(object: fc.Arbitrary<A>) =>
  fc.tuple(object, extra).map(([a, b]) => ({ ...a, ...b }))
const listOf = <A>(item: fc.Arbitrary<A>) =>
  fc.oneof(fc.array(item, { maxLength: 3 }), fc.constantFrom(null, undefined))
const sentiment = withExtra(
  fc.record({ id, score: fc.constantFrom(1, 1.5, null), category: name, subCategory: name, opinion: name }),
)
const type = fc.constantFrom(
  null,
  undefined,
  '',
  'Promoter (Radio)',
  ' free form (RATING) ',
  'Instruction',
  'Other > (Type)',
)
const content = withExtra(
  fc.record({
    ...{
      id,
      question: name,
      questionType: type,
      questionCode: name,
      noOfSentiments: fc.constantFrom(0, 7, null),
      sentiments: listOf(sentiment),
    },
    liabilities: listOf(fc.record({ liabilityId: id, severity: fc.constantFrom(null, { level: 2, name: 'x' }) })),
  }),
)
// An object that lacks a name and one whose name is null have different texts, but mean the same.
const dimension = fc.oneof(
  fc.record({ id, name: name.filter((text) => text != null) }),
  fc.constantFrom(null, undefined),
)
const review = fc.record({
  ...{ id: fc.integer({ min: 1, max: 4 }), minute: fc.integer({ min: 0, max: 5 }) },
  ...{ location: dimension, provider: dimension, source: dimension, contents: listOf(content) },
  taskDetails: fc.oneof(withExtra(fc.record({ id, status: name })), fc.constantFrom(null, undefined)),
  engagement: listOf(
    withExtra(fc.record({ engagement: name, engagementTime: fc.constant('2026-01-01T00:00:00.000Z') })),
  ),
})
const pagesArbitrary = fc.array(fc.array(review, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 3 })

const toText = ({ minute, ...members }: { minute: number }): string =>
  JSON.stringify({ ...members, modifiedTime: `2026-01-01T00:0${minute}:00.000Z` })

describe('the rows made of reviews in a file', () => {
  it('are those that their streams send, for any reviews in any order', async () => {
    await fc.assert(
      fc.asyncProperty(pagesArbitrary, fc.boolean(), async (drawn, history) => {
        const { projected, shared } = toMessages(drawn.map((page) => page.map(toText)))
        expect(await loadContent(shared, { history })).toEqual(await loadContent(projected, { history }))
      }),
      { ...draws(8), endOnFailure: true },
    )
  })

  it('are the same in a lake, which appends them', async () => {
    const readRows = async ({ db }: Snapshot) =>
      Promise.all(infos.map(({ name: stream }) => db.query(`SELECT _airbyte_raw_id FROM ${stream} ORDER BY ALL`)))
    await fc.assert(
      fc.asyncProperty(pagesArbitrary, async (drawn) => {
        const { shared } = toMessages(drawn.map((page) => page.map(toText)))
        const [file, lake] = [await openMemorySnapshot(), await openMemoryLake()]
        try {
          const summaries = await writeMessages(file, shared)
          expect(await writeLakeMessages(lake, shared)).toEqual(summaries)
          expect(await readRows(lake)).toEqual(await readRows(file))
        } finally {
          file.db.close()
          lake.db.close()
        }
      }),
      { ...draws(4), endOnFailure: true },
    )
  })

  it('are the same where a commit is cut into parts', async () => {
    const texts = Array.from({ length: 2500 }, (_, i) =>
      toText({
        minute: i % 6,
        id: 1 + (i % 1500),
        contents: [{ id: 1, question: 'q', sentiments: [{ id: i % 3 }] }],
      } as never),
    )
    const { shared } = toMessages([texts])
    const whole = await loadContent(shared, { history: false })
    expect(await loadContent(shared, { history: false, inParts: true })).toEqual(whole)
    expect(whole.tables.find(({ table }) => table === 'review_contents')?.rows).toBe(1500)
  })
})
