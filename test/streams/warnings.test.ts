import * as E from 'fp-ts/Either'
import * as TE from 'fp-ts/TaskEither'
import { describe, expect, test } from 'vitest'
import { toInstant } from '../../connector/cdk/scalar'
import type { ExportPage } from '../../connector/export/fetch-page'
import { collectPageWarnings, collectUnknownAttributes } from '../../connector/streams/warnings'

test('undeclared attributes are named once, and no more than twenty of them', () => {
  const nameUnknown = collectUnknownAttributes()
  const paths = Array.from({ length: 3000 }, (_, i) => `reviews.field_${i}`)
  expect(nameUnknown(paths.slice(0, 2))).toEqual([
    'The service sent an attribute this version does not know: reviews.field_0.',
    'The service sent an attribute this version does not know: reviews.field_1.',
  ])
  expect(nameUnknown(paths.slice(0, 2))).toEqual([])
  const more = nameUnknown(paths)
  expect(more).toHaveLength(19)
  expect(more.at(-1)).toBe('The service sent more attributes this version does not know; they are not named here.')
  expect(nameUnknown(paths)).toEqual([])
})

describe('a bound of mention time that was not asked for', () => {
  const now = Date.UTC(2026, 0, 31, 12)
  const request = { modifiedTimeFrom: '2026-01-01T00:00:00.000Z', offset: 0, limit: 10 }
  type Page = Partial<ExportPage>
  const warningsOf = async (
    pages: ReadonlyArray<Page>,
    { asked = {}, hasMentionTime = true }: { readonly asked?: object; readonly hasMentionTime?: boolean } = {},
  ): Promise<ReadonlyArray<string>> => {
    const left = [...pages]
    const { fetch, drain } = collectPageWarnings(
      { name: 'export', hasMentionTime },
      () => TE.right({ rows: [], filter: {}, unknownPaths: [], ...left.shift() }),
      () => now,
    )
    for (const _ of pages) expect(E.isRight(await fetch({ ...request, ...asked })())).toBe(true)
    return drain()
  }
  const echo = (after: number | undefined, before?: number, more: Page = {}): Page => ({
    filter: {
      ...(after === undefined ? {} : { mentionTimeAfter: toInstant(after) }),
      ...(before === undefined ? {} : { mentionTimeBefore: toInstant(before) }),
    },
    ...more,
  })
  const yearAgo = Date.UTC(2025, 0, 31, 12)

  test('is warned of once, though it moves with the time, with the key that sets it', async () => {
    expect(await warningsOf([echo(yearAgo, yearAgo + 9), echo(yearAgo + 5, yearAgo + 10)])).toEqual([
      'export: the service leaves out what was posted before 2025-01-31T12:00:00.000Z, though it was not asked to: it applies a default of its own. Set mention_time_after to the time from which you need reviews.',
      'export: the service leaves out what was posted after 2025-01-31T12:00:00.009Z, though it was not asked to: it applies a default of its own. Set mention_time_before to the time up to which you need reviews.',
    ])
    expect(await warningsOf([echo(yearAgo)], { hasMentionTime: false })).toEqual([
      "export: the service leaves out what was posted before 2025-01-31T12:00:00.000Z, though it was not asked to: it applies a default of its own. No setting changes it; ask the service's operator.",
    ])
  })

  test('is fine where it leaves out nothing, or was asked for', async () => {
    const day = 86_400_000
    expect(await warningsOf([echo(0, now), echo(day, now - 60_000), echo(undefined), {}])).toEqual([])
    const asked = { mentionTimeAfter: toInstant(yearAgo), mentionTimeBefore: toInstant(yearAgo + 9) }
    expect(await warningsOf([echo(yearAgo, yearAgo + 9)], { asked })).toEqual([])
    expect(await warningsOf([{ filter: { mentionTimeAfter: 'ever', mentionTimeBefore: null } }])).toEqual([])
    expect(await warningsOf([echo(day + 1)])).toHaveLength(1)
  })

  test('is compared with the time of the service, where that is known', async () => {
    expect(await warningsOf([echo(0, now - 3_600_000, { servedAt: now - 3_600_000 })])).toEqual([])
    expect(await warningsOf([echo(0, now, { servedAt: now + 60_001 })])).toHaveLength(1)
    expect(await warningsOf([echo(0, now - 60_001)])).toHaveLength(1)
  })
})
