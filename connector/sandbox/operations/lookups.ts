import * as E from 'fp-ts/Either'
import type { ApiError, LookupQuery } from '../../api'
import { parseExactJson } from '../../cdk'
import type { Database } from '../../snapshot/store'
import { phrases } from '../data/vocabulary'
import { badRequestError } from './operation'

/** The sources of operation 8. The specification does not describe the answer, so the sandbox chooses its form. */
export const listSources = async (database: Database): Promise<unknown> => ({
  sources: await database.query('SELECT id, name FROM source ORDER BY id'),
})

/** The categories of operation 8. The specification does not describe the answer, so the sandbox chooses its form. */
export const listCategories = (): unknown => ({
  categories: [...new Map(phrases.map((phrase) => [`${phrase.category} ${phrase.subCategory}`, phrase])).values()].map(
    ({ category, subCategory }, n) => ({ id: n + 1, category, subCategory }),
  ),
})

const locationAttributes = [
  ...['internalName', 'phone', 'email', 'website', 'address1', 'address2', 'city', 'state', 'zip', 'country'],
  ...['productMappings', 'entityMappings', 'additionalAttributes', 'labels', 'modifiedTime'],
]

/**
 * A page of the active locations, as deployments list them: at most 100 per page, counted from 1, in the order of ids.
 */
export const listLocations = async (
  database: Database,
  { page = '1', size = '20', sortDirection = 'ASC' }: LookupQuery,
): Promise<E.Either<ApiError, unknown>> => {
  if (![page, size].every((value) => /^[1-9]\d{0,8}$/.test(String(value))))
    return E.left(badRequestError('page, size: expected whole numbers from 1'))
  const pageSize = Math.min(Number(size), 100)
  const totalCount = Number(await database.scalar('SELECT count(*) FROM location WHERE active'))
  const rows = await database.query(`
    SELECT id::VARCHAR AS id, name, code, code_type, details FROM location
    WHERE active
    ORDER BY location.id ${sortDirection === 'DESC' ? 'DESC' : 'ASC'}
    LIMIT ${pageSize} OFFSET ${(Number(page) - 1) * pageSize}`)
  const data = rows.map(({ id, name, code, code_type, details }) => {
    const attributes = typeof details === 'string' ? (parseExactJson(details) as Record<string, unknown>) : {}
    return {
      id: Number(id),
      displayName: name,
      code,
      codeType: code_type,
      createdTime: null,
      ...Object.fromEntries(locationAttributes.map((attribute) => [attribute, attributes[attribute] ?? null])),
    }
  })
  return E.right({
    data,
    totalCount,
    totalPages: Math.ceil(totalCount / pageSize),
    currentPage: Number(page),
    pageSize,
  })
}

const entityTables: ReadonlyMap<unknown, string> = new Map([
  ['Person', 'SELECT id::VARCHAR AS code, name FROM provider ORDER BY provider.id'],
  ['Location', 'SELECT code, name FROM location WHERE active ORDER BY location.id'],
])

/** The entities of a type, as deployments list them: by codes that operations 1 to 3 accept. */
export const listEntities = async (database: Database, { type }: LookupQuery): Promise<E.Either<ApiError, unknown>> => {
  const sql = entityTables.get(type)
  if (sql === undefined) return E.left(badRequestError(`type: expected ${[...entityTables.keys()].join(' or ')}`))
  const rows = await database.query(sql)
  return E.right({ entities: rows.map(({ code, name }) => ({ name, code, type })) })
}
