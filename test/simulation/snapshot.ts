import { copyFileSync, existsSync, readFileSync, rmSync } from 'node:fs'
import type { Remedy } from './duckdb'
import type { Violation } from './oracles'
import {
  createPartTables,
  familyStreams,
  isSharedPart,
  type PartTables,
  partRowsSql,
  repeatedPartsSql,
} from './part-tables'
import type { ExportService } from './service'
import { listSentRows, readCutoff, type SavedState } from './states'

export type OpenSnapshot = typeof import('../../connector/snapshot').openSnapshot
type Snapshot = import('../../connector/snapshot').Snapshot

/** What the DuckDB file of `feedback sync` holds; times in milliseconds. */
export type SnapshotRows = {
  /** The version of each review, by id. */
  readonly reviews: ReadonlyMap<string, number>
  /** The version of the review of each content, by the review's id, and its text. */
  readonly contents: ReadonlyMap<string, { readonly modified: number; readonly text: string }>
  /** The last deletion of each review that is known, by id. */
  readonly deletions: ReadonlyMap<string, number>
  /** The reviews that were forgotten, by id. */
  readonly forgotten: ReadonlySet<string>
  /** Each version of a review that is there, the older ones too, as `id time`. */
  readonly versions: ReadonlySet<string>
  /** What the tables of other parts of reviews hold. */
  readonly parts: PartTables
  /** By stream. */
  readonly states: Readonly<Record<string, SavedState>>
}

const copyPath = 'copy.duckdb'

/** What is damaged where the file has opened: DuckDB reads a block, and its checksum, only once it is needed. */
const findDamage = async ({ db }: Snapshot): Promise<string> => {
  try {
    for (const { name } of await db.query(
      'SELECT table_name AS name FROM duckdb_tables() WHERE database_name = current_database()',
    ))
      await db.query(`SELECT sum(hash(t)) AS hash FROM "${name}" AS t`)
    return ''
  } catch (error) {
    return /Corrupt database|Could not read enough bytes|Failed to deserialize|MetadataReader|INTERNAL Error/.test(
      String(error),
    )
      ? 'It is damaged: read everything again into a new file'
      : String(error)
  }
}

const remedies: ReadonlyArray<readonly [Remedy, RegExp]> = [
  ['move the log away', /Move \S+[.]wal away and run again/],
  ['read everything again', /read everything again into a new file/],
]

/** What a message advises for a damaged file. */
export const findRemedy = (message: string): Remedy | undefined =>
  remedies.find(([, pattern]) => pattern.test(message))?.[0]

/**
 * Reads a copy of the file, and reports internal faults: it does not open, or a key comes twice. Without a file there
 * are no rows. `mayBeDamaged`: the disk may have lost parts of it; then a remedy may be advised instead of the rows.
 */
export const readSnapshot = async (
  path: string,
  openSnapshot: OpenSnapshot,
  report: (oracle: string, what: string) => void,
  { mayBeDamaged }: { readonly mayBeDamaged: boolean },
): Promise<SnapshotRows | Remedy> => {
  const [reviews, deletions] = [new Map<string, number>(), new Map<string, number>()]
  const contents = new Map<string, { modified: number; text: string }>()
  const states: Record<string, SavedState> = {}
  const [forgotten, versions] = [new Set<string>(), new Set<string>()]
  const parts = createPartTables(familyStreams)
  const rows = { reviews, contents, deletions, states, forgotten, versions, parts }
  for (const suffix of ['', '.wal']) {
    rmSync(copyPath + suffix, { force: true })
    if (existsSync(path + suffix)) copyFileSync(path + suffix, copyPath + suffix)
  }
  if (!existsSync(path)) return rows
  // As a run opens it.
  const opened = await openSnapshot(copyPath, 'write', { memoryLimit: 256e6 })()
  const problem = opened._tag === 'Left' ? opened.left.message : mayBeDamaged ? await findDamage(opened.right) : ''
  if (opened._tag === 'Left' || problem !== '') {
    if (opened._tag === 'Right') opened.right.db.close()
    const remedy = findRemedy(problem)
    if (mayBeDamaged && remedy !== undefined) return remedy
    report('the file opens', problem)
    return rows
  }
  const { db } = opened.right
  const tables = new Set((await db.query('SELECT table_name AS name FROM duckdb_tables()')).map(({ name }) => name))
  const addOnce = <A>(table: string, into: Map<string, A>, id: string, value: A): void => {
    if (into.has(id)) report('nothing doubled', `${table}: ${id}`)
    into.set(id, value)
  }
  if (tables.has('reviews'))
    for (const { id, time } of await db.query(
      'SELECT id::VARCHAR AS id, epoch_ms("modifiedTime") AS time FROM reviews ORDER BY ALL',
    ))
      addOnce('reviews', reviews, String(id), Number(time))
  if (tables.has('review_contents'))
    for (const { id, time, text } of await db.query(
      `SELECT "reviewId"::VARCHAR AS id, epoch_ms("reviewModifiedTime") AS time, response AS text
         FROM review_contents
         ORDER BY ALL`,
    ))
      addOnce('review_contents', contents, String(id), { modified: Number(time), text: String(text) })
  for (const stream of familyStreams.filter((name) => tables.has(name))) {
    for (const data of await db.query(partRowsSql(stream))) parts.keep({ stream, data })
    for (const { key } of await db.query(repeatedPartsSql(stream))) report('nothing doubled', `${stream}: ${key}`)
  }
  const deletionSql = [
    ...(tables.has('deleted_reviews') ? ['SELECT id, "modifiedTime" AS time FROM deleted_reviews'] : []),
    ...(tables.has('_deletions') ? ['SELECT id, time FROM _deletions'] : []),
  ].join(' UNION ALL ')
  if (deletionSql !== '')
    for (const { id, time } of await db.query(
      `SELECT id::VARCHAR AS id, epoch_ms(max(time)) AS time FROM (${deletionSql}) GROUP BY 1 ORDER BY ALL`,
    ))
      deletions.set(String(id), Number(time))
  if (tables.has('deleted_reviews'))
    for (const { id } of await db.query(
      'SELECT id::VARCHAR AS id FROM deleted_reviews GROUP BY 1 HAVING count(*) > 1 ORDER BY ALL',
    ))
      report('nothing doubled', `deleted_reviews: ${id}`)
  if (tables.has('_state'))
    for (const { stream, state } of await db.query('SELECT stream, state FROM _state ORDER BY stream'))
      states[String(stream)] = JSON.parse(String(state))
  for (const table of ['reviews', '_history_reviews'].filter((name) => tables.has(name)))
    for (const { id, time } of await db.query(
      `SELECT id::VARCHAR AS id, epoch_ms("modifiedTime") AS time FROM ${table} ORDER BY ALL`,
    ))
      versions.add(`${id} ${time}`)
  if (tables.has('_forgotten'))
    for (const { id } of await db.query(`SELECT id FROM _forgotten WHERE kind = 'review' ORDER BY ALL`))
      forgotten.add(String(id))
  if (tables.has('_streams'))
    for (const { stream, rows: counted } of await db.query('SELECT stream, rows FROM _streams ORDER BY ALL')) {
      const found = Number(await db.scalar(`SELECT count(*) FROM "${stream}"`))
      if (found !== Number(counted)) report('the file counts its rows', `${stream}: ${found} in place of ${counted}`)
    }
  db.close()
  return rows
}

/** Nothing is left of a review that was forgotten, in the rows or in the bytes. */
export const checkForgotten = (
  path: string,
  { forgotten, reviews, contents, deletions, versions }: SnapshotRows,
  service: ExportService,
): ReadonlyArray<Violation> => {
  if (forgotten.size === 0) return []
  const violations: Violation[] = []
  const bytes = ['', '.wal']
    .map((suffix) => path + suffix)
    .filter(existsSync)
    .map((file) => readFileSync(file))
  for (const id of forgotten) {
    const isThere = [reviews, contents, deletions].some((table) => table.has(id))
    if (isThere || [...versions].some((version) => version.startsWith(`${id} `)))
      violations.push({ oracle: 'forgotten for good', what: `review ${id}` })
    for (const word of service.wordsOf(id))
      if (bytes.some((each) => each.includes(word)))
        violations.push({ oracle: 'forgotten for good', what: `the bytes of ${word} of review ${id}` })
  }
  return violations
}

/** The file has this version of a review, a later one, or a later deletion. */
const holds = (rows: SnapshotRows, stream: string, id: string, modified: number): boolean => {
  const held = { reviews: rows.reviews.get(id), review_contents: rows.contents.get(id)?.modified }[stream]
  return (held ?? Number.NEGATIVE_INFINITY) >= modified || (rows.deletions.get(id) ?? 0) >= modified
}

/** How far before its cursor a run starts by default, and what rounding to seconds takes; milliseconds. */
const lookback = 600_000
const rounding = 1_000

/**
 * Committed states are never ahead of committed rows. Three things show what was read: the rows that a state lists; its
 * cursor, before which nothing is requested again; and the offset of an unfinished scan. `hasRested`: the service's
 * rows are the same, in the same order, as when this scan began, so the rows before the offset are those that were
 * read.
 */
export const checkStates = (
  rows: SnapshotRows,
  service: ExportService,
  hasRested: (begun: string) => boolean,
): ReadonlyArray<Violation> => {
  const violations: Violation[] = []
  const claim = (stream: string, id: string, modified: number, why: string): void => {
    if (!rows.forgotten.has(id) && !holds(rows, stream, id, modified))
      violations.push({ oracle: 'no state ahead', what: `${stream} lacks ${id} of ${modified}, ${why}` })
  }
  for (const [stream, state] of Object.entries(rows.states)) {
    const { modifiedTimeFrom, slack = 0, recent = [], scan } = state
    const reached = Date.parse(modifiedTimeFrom) - slack - lookback - rounding
    const cutoff = readCutoff(scan)
    const isOfReviews = ['reviews', 'review_contents', 'deleted_reviews'].includes(stream)
    for (const [id, modified, why] of isOfReviews ? listSentRows(state) : []) claim(stream, id, modified, why)
    if (stream === 'deleted_reviews') {
      for (const deletion of service.truth(Number.POSITIVE_INFINITY).deleted) {
        const [id = '', modified] = deletion.split(' ')
        if (!rows.forgotten.has(id) && Number(modified) <= reached && (rows.deletions.get(id) ?? 0) < Number(modified))
          violations.push({ oracle: 'no state ahead', what: `${stream} lacks ${deletion}` })
      }
      continue
    }
    const listed = service.list(0)
    if (stream !== 'reviews' && stream !== 'review_contents') {
      // What a review has in its version now: the parts of it that a state covers are there.
      const isRead = (id: string, modified: number): boolean =>
        modified <= reached || recent.some(([sent, version]) => sent === id && version === modified)
      for (const row of isSharedPart(stream) ? [] : listed) {
        const id = String(row.id)
        const isGone = rows.forgotten.has(id) || (rows.deletions.get(id) ?? 0) >= row.modified
        if (isRead(id, row.modified) && !isGone && !rows.parts.holds(stream, row))
          violations.push({ oracle: 'no state ahead', what: `${stream} lacks parts of ${id} of ${row.modified}` })
      }
      continue
    }
    for (const { id, modified } of listed)
      if (modified <= reached) claim(stream, String(id), modified, 'which is before its cursor')
    if (scan === undefined || scan.windows.length !== 1 || Object.keys(scan.windows[0] ?? {}).length > 0) continue
    if (!hasRested(scan.begun)) continue
    for (const { id, modified } of service.list(Date.parse(scan.from)).slice(0, scan.offset))
      if (modified <= cutoff) claim(stream, String(id), modified, `which is before its offset ${scan.offset}`)
  }
  return violations
}

/**
 * After a quiet run the tables equal what the service has `now`: nothing lost, nothing stale, nothing beyond, and each
 * part with its review.
 */
export const compareSnapshot = (
  rows: SnapshotRows,
  service: ExportService,
  now: number,
  hasFamily: boolean,
): ReadonlyArray<Violation> => {
  const violations: Violation[] = []
  const broken = (oracle: string, what: string): void => void violations.push({ oracle, what })
  const listed = service.list(0).filter(({ id, modified }) => modified <= now && !rows.forgotten.has(String(id)))
  const alive = new Map(listed.map((row) => [String(row.id), row]))
  for (const [id, { modified, text }] of alive) {
    const [held, content] = [rows.reviews.get(id), rows.contents.get(id)]
    if (held === undefined) broken('nothing lost', `review ${id} of ${modified}`)
    else if (held !== modified) broken('nothing stale', `review ${id} of ${modified}; held of ${held}`)
    if (content === undefined) broken('nothing lost', `content of review ${id} of ${modified}`)
    else if (content.modified !== modified || content.text !== JSON.parse(text).contents[0].response)
      broken('nothing stale', `content of review ${id} of ${modified}; held of ${content.modified}`)
  }
  if (hasFamily) violations.push(...rows.parts.compare([...alive.values()], { hasOldParts: false }))
  for (const id of rows.reviews.keys()) if (!alive.has(id)) broken('nothing beyond', `review ${id}`)
  for (const id of rows.contents.keys()) if (!alive.has(id)) broken('nothing beyond', `content of review ${id}`)
  for (const deletion of service.truth(Number.POSITIVE_INFINITY).deleted) {
    const [id = '', modified] = deletion.split(' ')
    if (!rows.forgotten.has(id) && (rows.deletions.get(id) ?? 0) < Number(modified))
      broken('nothing lost', `deletion ${deletion}`)
  }
  return violations
}
