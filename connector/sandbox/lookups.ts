import type { Database } from '../snapshot/database'

/** Operation 8, sources; the form of the answer is the sandbox's own. */
export const lookupSources = async (database: Database): Promise<unknown> => ({
  sources: await database.query('SELECT id, name FROM source ORDER BY id'),
})

/** Operation 8, categories of analysed data; the form of the answer is the sandbox's own. */
export const lookupCategories = async (database: Database): Promise<unknown> => ({
  categories: await database.query('SELECT DISTINCT category, sub_category AS "subCategory" FROM phrase ORDER BY ALL'),
})
