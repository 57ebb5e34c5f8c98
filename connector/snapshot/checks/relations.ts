import type { Check } from '../check'
import { literal, quoted } from '../database'
import { deletions, parent, tombstoneColumn } from '../relations'
import { type Context, hasColumns, keyText, type Stream, said, together } from './context'

/** How far a stream has been read; what is later than that may be missing there. */
const readUpTo = (stream: string) =>
  `(SELECT max(cursor_to::TIMESTAMPTZ) FROM _loads WHERE stream = ${literal(stream)})`

/** The stream that lists each distinct thing a review names. */
const named = [
  ['location', 'locations'],
  ['provider', 'providers'],
  ['source', 'sources'],
] as const

/** What holds between reviews, their deletions, their children and what they name. */
export const relationChecks = (streams: Context): ReadonlyArray<Check> => {
  const find = (name: string) => streams.find((stream) => stream.name === name && hasColumns(stream, 'id'))
  const reviews = find(parent)
  const children = streams.filter((stream) => hasColumns(stream, 'reviewId', 'reviewModifiedTime'))
  const about = reviews === undefined ? [] : children
  return [
    {
      name: 'deletions are applied',
      explain: 'No review is alive that was there before its deletion came, and is no newer than it.',
      sql: reviews !== undefined && find(deletions) !== undefined ? undead() : undefined,
    },
    {
      name: 'tombstones are applied',
      explain: 'No tombstone stands among the reviews.',
      sql: reviews === undefined ? undefined : standing(reviews),
    },
    {
      name: 'children have their review',
      explain: 'Every row with a reviewId has its review, as far as reviews have been read.',
      sql: together(
        about.map(
          ({ name, key }) => `
      SELECT ${said(name, keyText(key))} FROM ${quoted(name)} AS child
      WHERE NOT EXISTS (SELECT 1 FROM ${parent} AS review WHERE review.id = child."reviewId")
        AND child."reviewModifiedTime" <= ${readUpTo(parent)}`,
        ),
      ),
    },
    {
      name: "children are of their review's version",
      explain: 'No row with a reviewId is left over from an older version of its review.',
      sql: together(
        about.map(
          ({ name, key }) => `
      SELECT ${said(name, keyText(key, 'child.'))} FROM ${quoted(name)} AS child JOIN ${parent} AS review ON review.id = child."reviewId"
      WHERE child."reviewModifiedTime" < review."modifiedTime"`,
        ),
      ),
    },
    {
      name: 'what reviews name is listed',
      explain:
        'The location, provider and source of each review stand in their own tables, as far as these have been read.',
      sql: together(
        named.flatMap(([attribute, list]) =>
          reviews?.columns.some(({ name, type }) => name === attribute && type === 'JSON') === true &&
          find(list) !== undefined
            ? [
                `
      SELECT DISTINCT ${said(list, `'id ' || id || ' is missing'`)}
      FROM (SELECT TRY_CAST(${quoted(attribute)}->>'$.id' AS BIGINT) AS id, "modifiedTime" AS time FROM ${parent})
      WHERE id NOT IN (SELECT id FROM ${quoted(list)} WHERE id IS NOT NULL) AND time <= ${readUpTo(list)}`,
              ]
            : [],
        ),
      ),
    },
  ]
}

const undead = (): string => `
      SELECT ${said(parent, `'id ' || review.id || ' was deleted at ' || gone."modifiedTime"`)}
      FROM ${parent} AS review JOIN ${deletions} AS gone ON gone.id = review.id
      WHERE review."modifiedTime" <= gone."modifiedTime" AND review._airbyte_extracted_at < gone._airbyte_extracted_at`

const standing = (reviews: Stream): string | undefined => {
  const tombstone = tombstoneColumn(reviews)
  return tombstone === undefined
    ? undefined
    : `
      SELECT ${said(parent, `'id ' || id`)} FROM ${parent} WHERE ${quoted(tombstone)} IS NOT NULL`
}
