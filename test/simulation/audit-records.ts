import { createHash } from 'node:crypto'
import type { Row } from './consumer'

/** Of one review, or one key: its newest version that has rows, and the keys of those. */
type NewestRows = { readonly version: number; readonly rows: Set<string> }

const hashOf = (text: string): bigint => BigInt(`0x${createHash('md5').update(text).digest('hex').slice(0, 15)}`)

const isTombstone = (data: Row['data']): boolean => (data._ab_cdc_deleted_at ?? data._sdc_deleted_at ?? null) !== null

/** Counts what `sync_audit` should report about the rows that a run has sent of one stream. */
const createTally = () => {
  const newest = new Map<string, NewestRows>()
  let records = 0
  return {
    add: (data: Row['data']): void => {
      records += 1
      const isPart = data.reviewId !== undefined
      const id = String(data.reviewId ?? data.id)
      const version = Date.parse(String(data.reviewModifiedTime ?? data.modifiedTime))
      const held = newest.get(id)
      if (held !== undefined && held.version > version) return
      const key = isPart ? [data.contentId, data.id, data.liabilityId, data.position].join(' ') : id
      if (isTombstone(data)) newest.set(id, { version, rows: new Set() })
      else if (held?.version === version) held.rows.add(key)
      else newest.set(id, { version, rows: new Set([key]) })
    },
    tell: () => {
      let [rows, digest] = [0, 0n]
      for (const [id, { version, rows: own }] of newest) {
        rows += own.size
        digest += hashOf(`${id}:${version}`) * BigInt(own.size)
      }
      return { records, rows, digest: String(digest) }
    },
  }
}

/** Compares the records of `sync_audit` in one run with the rows that the run has sent. */
export const createAuditCheck = (report: (oracle: string, what: string) => void) => {
  const tallies = new Map<string, ReturnType<typeof createTally>>()
  const told = new Set<string>()
  return {
    take: ({ stream, data }: Row): void => {
      if (stream !== 'sync_audit') {
        const tally = tallies.get(stream) ?? createTally()
        tallies.set(stream, tally)
        tally.add(data)
        return
      }
      const audited = String(data.stream)
      if (told.has(audited)) report('nothing doubled', `sync_audit: ${audited}`)
      told.add(audited)
      const { records, rows, digest } = data
      const [found, wanted] = [
        JSON.stringify({ records, rows, digest }),
        JSON.stringify((tallies.get(audited) ?? createTally()).tell()),
      ]
      if (found !== wanted) report('a right audit', `${audited}: ${found} in place of ${wanted}`)
    },
    /** How many records of `sync_audit` the run has sent. */
    count: () => told.size,
    /** After a run that has ended well: each of these streams has a record. */
    end: (streams: ReadonlyArray<string>): void => {
      for (const stream of streams) if (!told.has(stream)) report('a right audit', `there is no record of ${stream}`)
    },
  }
}
