import { expect, it, onTestFinished } from 'vitest'
import { startSandbox } from '../../connector/sandbox/start'
import { streams } from '../../connector/streams/streams'
import { createSourceEnv, locationsFromReviews, readAll } from '../support/in-process'
import { type Relation, relations } from './entity-diagram'

/** The value under a path of attributes, as text; undefined where it is null, blank or absent. */
const valueAt = (row: Readonly<Record<string, unknown>>, path: string): string | undefined => {
  const value = path
    .split('.')
    .reduce((inner: unknown, key) => (inner as Readonly<Record<string, unknown>> | null | undefined)?.[key], row)
  return value === null || value === undefined || value === '' ? undefined : String(value)
}

/** The rows of `to` whose attributes equal those of no row of `from`; rows without them are left out. */
const orphans = (
  records: Readonly<Record<string, ReadonlyArray<Readonly<Record<string, unknown>>>>>,
  { from, fromAttributes, to, toAttributes }: Relation,
): readonly [found: number, orphans: ReadonlyArray<string>] => {
  const tuple = (row: Readonly<Record<string, unknown>>, paths: ReadonlyArray<string>) =>
    JSON.stringify(paths.map((path) => valueAt(row, path) ?? null))
  const known = new Set((records[from] ?? []).map((row) => tuple(row, fromAttributes)))
  const rows = (records[to] ?? []).filter((row) => toAttributes.some((path) => valueAt(row, path) !== undefined))
  return [rows.length, rows.map((row) => tuple(row, toAttributes)).filter((text) => !known.has(text))]
}

it('each edge holds in what a run reads', async () => {
  const until = Date.parse('2026-01-01T00:00:00Z')
  const sandbox = await startSandbox({ reviews: 80, until, now: () => until + 3_600_000 })
  onTestFinished(() => sandbox.close())
  const source = createSourceEnv(sandbox.api, { now: () => until + 3_600_000, entities: locationsFromReviews })
  const { records } = await readAll(source, streams)
  for (const one of relations.filter(({ to }) => to !== 'deleted_reviews')) {
    const [found, alone] = orphans(records, one)
    expect([one.from, one.to, found > 0, alone]).toEqual([one.from, one.to, true, []])
  }
  // A deleted review is not among the reviews any more, unless it was read before.
  expect(records.deleted_reviews?.length).toBeGreaterThan(0)
  const once = relations.filter(({ rows }) => rows === 'one')
  for (const { to, toAttributes } of once) {
    const keys = (records[to] ?? []).map((row) => toAttributes.map((path) => valueAt(row, path)).join(' '))
    expect([to, new Set(keys).size]).toEqual([to, keys.length])
  }
})
