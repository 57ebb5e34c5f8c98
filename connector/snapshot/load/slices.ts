import type { Database } from '../store/database'
import { type Column, findReviewReference, listReviewReferences, type Table } from '../store/tables'
import { type Change, countRecords, loadsOf, type Received } from './changes'
import { commitReceived } from './commit'
import { mapToColumns } from './evolve'
import { reviewSlicesSql } from './lookups'
import { type Spool, splitSpool } from './spool'
import { typeValuesSql } from './typed-rows'

const spoolsOf = ({ changes, shared }: Received): ReadonlyArray<Spool> =>
  [...changes, ...shared].map(({ spool }) => spool)

/** Into how many slices a commit is cut, and how often. Below `leastCut` records it is not cut. */
const [sliceCount, mostCuts, leastCut] = [8, 3, 2000]

/**
 * Commits changes. If they need more memory than DuckDB may use, commits them in slices of some reviews each, with
 * everything that belongs to these. The last slice has the rows without a review and the states, which cover all
 * slices: whenever a run is killed, states in the file cover only rows in the file.
 */
export const commitWithinMemory = (
  db: Database,
  name: string,
  received: Received,
  tables: ReadonlyArray<Table>,
  now: number,
  cuts = 0,
): Promise<void> => {
  const isLarge = countRecords(spoolsOf(received)) >= leastCut
  const commitSlices = async (): Promise<void> => {
    const slices = await db.withMemory(name, () => cutReceived(db, received, tables))
    try {
      for (const slice of slices) {
        await commitWithinMemory(db, name, slice, tables, now, slices.length > 1 ? cuts + 1 : mostCuts)
        await db.release()
      }
    } finally {
      const whole = spoolsOf(received)
      for (const spool of slices.flatMap(spoolsOf)) if (!whole.includes(spool)) spool.close()
    }
  }
  const inSlices = isLarge && cuts < mostCuts ? commitSlices : undefined
  return db.withMemory(name, () => commitReceived(db, received, tables, now), inSlices)
}

/** What was received, in slices. The last one has the rest and the states. */
const cutReceived = async (
  db: Database,
  received: Received,
  tables: ReadonlyArray<Table>,
): Promise<ReadonlyArray<Received>> => {
  const { changes, shared } = received
  const references = listReviewReferences(tables)
  const cutChanges = changes.flatMap((change) => {
    const { table } = change.load
    const id = table.columns.find(({ name }) => name === findReviewReference(table)?.id)
    // Versions of the same row belong in the same slice.
    return id !== undefined && change.spool.count() > 0 && mapToColumns(table, change.target).key.includes(id.name)
      ? [{ change, id, spool: change.spool }]
      : []
  })
  const cut = [...cutChanges, ...shared.map(({ spool }) => ({ id: reviewIdColumn, spool }))]
  if (cut.length === 0) return [received]
  const values = cut.map(({ id, spool }) => typeValuesSql(id, spool.toSql()))
  const places = cut.map(({ spool }) => new Uint8Array(spool.count()))
  const found = await db.stream(reviewSlicesSql(references, values, sliceCount))
  for await (const rows of found.chunks)
    for (const [batch, seq, slice] of rows) places[Number(batch)]?.set([Number(slice)], Number(seq))
  await db.run('DROP TABLE _value; DROP TABLE _slice')
  const spools = cut.map(({ spool }, i) => splitSpool(spool, db.path, places[i] ?? new Uint8Array(), sliceCount))
  const others = changes.filter((change) => cutChanges.every((each) => each.change !== change))
  return Array.from({ length: sliceCount }, (_, slice) => {
    const own = cutChanges.flatMap(({ change }, i) => {
      const [spool, ...later] = spools[i]?.slice(slice) ?? []
      return spool === undefined ? [] : [{ ...change, spool, records: change.records - countRecords(later) }]
    })
    const sharedSlice = shared.flatMap((each, i) => {
      const spool = spools[cutChanges.length + i]?.[slice]
      return spool === undefined || spool.count() === 0 ? [] : [{ ...each, spool }]
    })
    if (slice === sliceCount - 1) return { changes: [...own, ...others], shared: sharedSlice }
    const filled = sharedSlice.flatMap((each) => loadsOf(each, others))
    const unfinished = [...own, ...others.filter(({ load }) => filled.includes(load))]
    return { changes: unfinished.map(withoutEnd), shared: sharedSlice }
  })
}

/** A change whose stream goes on: its state and its end come with the last slice. */
const withoutEnd = (change: Change): Change => ({
  ...change,
  state: undefined,
  status: 'running',
  activatesGeneration: false,
})

/** The key of reviews in what was received once for several streams. */
const reviewIdColumn: Column = { name: 'id', type: 'BIGINT' }
