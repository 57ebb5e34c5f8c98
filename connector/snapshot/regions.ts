import { foldName } from './regions-file'
import { type Database, quoteIdentifier } from './store/database'
import type { ModelTables, Region } from './store/models'
import { type FileModels, findModels } from './store/views'

/** The locations in a file of regions that no review has, by id or else by name. */
export const findUnknownRegions = async (
  db: Database,
  regions: ReadonlyArray<Region>,
  view = 'reviews_current',
): Promise<ReadonlyArray<string>> => {
  const rows = await db.query(
    `SELECT DISTINCT location_id::VARCHAR AS id, lower(trim(location_name)) AS name FROM ${quoteIdentifier(view)}`,
  )
  const [ids, names] = [new Set(rows.map(({ id }) => id)), new Set(rows.map(({ name }) => name))]
  return regions
    .filter(
      ({ location_id, location_name }) =>
        !(location_id !== null && ids.has(location_id)) &&
        !(location_name !== null && names.has(foldName(location_name))),
    )
    .map(({ location_id, location_name }) =>
      location_id === null ? `the location "${location_name}"` : `the location ${location_id}`,
    )
}

/** The most unknown locations that are named individually. */
const maxNamed = 10

/** A sentence for each location that no review has. The last one counts the rest. */
export const explainUnknownRegions = (unknown: ReadonlyArray<string>): ReadonlyArray<string> => [
  ...unknown.slice(0, maxNamed).map((name) => `The regions file names ${name}, which no review has.`),
  ...(unknown.length > maxNamed ? [`It names ${unknown.length - maxNamed} more locations that no review has.`] : []),
]

/** Makes sure that the models and views which a query names exist as this version defines them. */
export const createNamedViews = async (
  db: Database,
  sql: string,
  given: ModelTables,
  onWarning: (message: string) => void,
): Promise<void> => provideModels(db, await findModels(db), sql, given, onWarning)

/**
 * `onWarning`: called with a message if a table of the user has the name of a model, and for each location of `regions`
 * that no review has.
 */
export const provideModels = async (
  db: Database,
  { renamed, provide }: FileModels,
  sql: string,
  given: ModelTables,
  onWarning: (message: string) => void,
): Promise<void> => {
  const words = new Set(sql.toLowerCase().match(/\w+/g))
  for (const [model, name] of renamed)
    if (words.has(model)) onWarning(`The file already has a table or view ${model}; the model of that name is ${name}.`)
  if (!(await provide(words, given)) || given.regions === undefined) return
  for (const warning of explainUnknownRegions(
    await findUnknownRegions(db, given.regions, renamed.get('reviews_current') ?? 'reviews_current'),
  ))
    onWarning(warning)
}
