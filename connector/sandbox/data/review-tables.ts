import type { Database } from '../../snapshot/store'

/**
 * The tables of the service's data. A review refers to its phrases by number (vocabulary.ts), so its row is small, and
 * its text, sentiments and scores are the same in every operation. The columns `original…` are set if the review came
 * from a snapshot. The table `restorable` keeps the rows of deleted reviews, which can be restored.
 */
export const tableDefinitions = `
CREATE TABLE setting (name VARCHAR PRIMARY KEY, value BIGINT NOT NULL);
CREATE TABLE source (id BIGINT PRIMARY KEY, name VARCHAR NOT NULL);
CREATE TABLE region (id BIGINT PRIMARY KEY, name VARCHAR NOT NULL);
CREATE TABLE brand (id BIGINT PRIMARY KEY, name VARCHAR NOT NULL);
CREATE TABLE location (
  id BIGINT PRIMARY KEY, code VARCHAR NOT NULL UNIQUE, code_type VARCHAR, name VARCHAR, active BOOLEAN NOT NULL,
  avatar_id BIGINT, avatar_type VARCHAR, region_id BIGINT, brand_id BIGINT, details VARCHAR
);
CREATE TABLE provider (id BIGINT PRIMARY KEY, name VARCHAR, npi VARCHAR);
CREATE TABLE review (
  id BIGINT NOT NULL, survey_bar_code VARCHAR, source_id BIGINT, location_id BIGINT, provider_id BIGINT,
  mention TIMESTAMP, modified TIMESTAMP NOT NULL, rating DOUBLE, staff_rating DOUBLE, access_rating DOUBLE,
  first_phrase INTEGER, second_phrase INTEGER, third_phrase INTEGER, words INTEGER,
  liability INTEGER, task_id BIGINT, task_status VARCHAR, task_owner INTEGER,
  answer INTEGER, answered TIMESTAMP, visit_record_id VARCHAR,
  original VARCHAR, original_brand VARCHAR, original_comment VARCHAR
);
CREATE TABLE restorable AS FROM review;
CREATE TABLE visit (
  id VARCHAR PRIMARY KEY, received TIMESTAMP NOT NULL, code VARCHAR, npi VARCHAR, record VARCHAR NOT NULL,
  reviewed BOOLEAN NOT NULL
);
CREATE TABLE deleted (id BIGINT NOT NULL, source_id BIGINT, modified TIMESTAMP NOT NULL);
`

/** Created after the rows, which is faster. Pages of the exports are read through it. */
export const indexDefinitions = `
CREATE UNIQUE INDEX review_id ON review (id);
`

/**
 * SQL for the text of an imported review with some attributes changed, NULL for a generated one; `patch` is SQL for a
 * JSON object.
 */
export const patchOriginal = (patch: string): string =>
  'CASE WHEN original IS NOT NULL THEN regexp_replace(json_merge_patch(original ' +
  `|| '}', ${patch})::VARCHAR, '\\}$', '') END`

/** The value of a column: an id as digits, a time in milliseconds. */
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

/** A review with the names of the objects that it refers to. */
export type ReviewRow = {
  readonly [name in Exclude<keyof typeof reviewColumns, 'id'>]: ReviewCell
} & {
  readonly id: string
}

const rowMembers = Object.entries(reviewColumns)
  .map(([name, value]) => `${name} := ${value}`)
  .join(', ')

/**
 * Reads reviews `r` from a table or subquery; `clauses` is the rest of the SQL statement, such as WHERE and ORDER BY.
 */
export const readReviewRows = async (
  database: Database,
  clauses: string,
  from = 'review',
): Promise<ReadonlyArray<ReviewRow>> => {
  // One text per row: reading every cell as a value from DuckDB takes several times as long.
  const rows = await database.query(
    `SELECT to_json(struct_pack(${rowMembers}))::VARCHAR AS row FROM ${from} r
     LEFT JOIN location l ON l.id = r.location_id LEFT JOIN provider p ON p.id = r.provider_id
     LEFT JOIN source s ON s.id = r.source_id LEFT JOIN brand b ON b.id = l.brand_id ${clauses}`,
  )
  return rows.map(({ row }) => JSON.parse(String(row)))
}
