import type { Database } from '../snapshot/database'

/** Ids are digits, times milliseconds. */
export type ReviewCell = string | number | null

const reviewColumns = {
  id: 'r.id::VARCHAR',
  survey_bar_code: 'r.survey_bar_code',
  location_id: 'r.location_id::VARCHAR',
  location: 'l.name',
  avatar_id: 'l.avatar_id::VARCHAR',
  avatar_type: 'l.avatar_type',
  provider_id: 'r.provider_id::VARCHAR',
  provider: 'p.name',
  npi: 'p.npi',
  source_id: 'r.source_id::VARCHAR',
  source: 's.name',
  brand_id: 'b.id::VARCHAR',
  brand: 'b.name',
  mention: 'epoch_ms(r.mention)',
  modified: 'epoch_ms(r.modified)',
  rating: 'r.rating',
  staff_rating: 'r.staff_rating',
  access_rating: 'r.access_rating',
  first_phrase: 'r.first_phrase',
  second_phrase: 'r.second_phrase',
  third_phrase: 'r.third_phrase',
  words: 'r.words',
  liability: 'r.liability',
  task_id: 'r.task_id::VARCHAR',
  task_status: 'r.task_status',
  task_owner: 'r.task_owner',
  answer: 'r.answer',
  answered: 'epoch_ms(r.answered)',
  visit_record_id: 'r.visit_record_id',
  original: 'r.original',
  original_brand: 'r.original_brand',
  original_comment: 'r.original_comment',
} as const

/** A review with the names of what it refers to. */
export type ReviewRow = { readonly [name in Exclude<keyof typeof reviewColumns, 'id'>]: ReviewCell } & {
  readonly id: string
}

const rowMembers = Object.entries(reviewColumns)
  .map(([name, value]) => `${name} := ${value}`)
  .join(', ')

/** Reviews `r`; `rest` says which and in which order, `from` where they are if not the whole table. */
export const readReviewRows = async (
  database: Database,
  rest: string,
  from = 'review',
): Promise<ReadonlyArray<ReviewRow>> => {
  // One text a row: a value a cell costs several times as much on the way out of DuckDB.
  const rows = await database.query(
    `SELECT to_json(struct_pack(${rowMembers}))::VARCHAR AS row FROM ${from} r
     LEFT JOIN location l ON l.id = r.location_id LEFT JOIN provider p ON p.id = r.provider_id
     LEFT JOIN source s ON s.id = r.source_id LEFT JOIN brand b ON b.id = l.brand_id ${rest}`,
  )
  return rows.map(({ row }) => JSON.parse(String(row)))
}
