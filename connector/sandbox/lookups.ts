import type { Database } from '../snapshot/database'
import { phrases } from './phrases'

/** Operation 8, sources; the form of the answer is the sandbox's own. */
export const listSources = async (database: Database): Promise<unknown> => ({
  sources: await database.query('SELECT id, name FROM source ORDER BY id'),
})

/** Operation 8, categories of analysed data; the form of the answer is the sandbox's own. */
export const listCategories = (): unknown => ({
  categories: [...new Map(phrases.map((phrase) => [`${phrase.category} ${phrase.subCategory}`, phrase])).values()].map(
    ({ category, subCategory }, n) => ({ id: n + 1, category, subCategory }),
  ),
})
