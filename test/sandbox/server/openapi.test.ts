import Ajv2020 from 'ajv/dist/2020'
import addFormats from 'ajv-formats'
import { describe, expect, it } from 'vitest'
import { routes } from '../../../connector/api/routes'
import { describeService } from '../../../connector/sandbox/server/openapi'
import {
  epochTime,
  getPath,
  operationPaths,
  postJson,
  readJsonAnswer,
  requestToken,
  startSmallSandbox,
} from '../../support/sandbox'

type Described = {
  readonly operationId: string
  readonly parameters?: ReadonlyArray<{ readonly name: string }>
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: object }>> }
  readonly responses: Readonly<
    Record<string, { readonly content: { readonly 'application/json': { readonly schema: object } } }>
  >
}
const described = describeService() as { readonly paths: Readonly<Record<string, Readonly<Record<string, Described>>>> }
const operations = new Map(
  Object.values(described.paths).flatMap((methods) =>
    Object.values(methods).map((operation) => [operation.operationId, operation] as const),
  ),
)

/** The errors of a value against a schema; empty if there are none. */
const schemaErrors = (schema: object | undefined, value: unknown): string => {
  const ajv = addFormats(new Ajv2020({ strict: false, allErrors: true }))
  const validate = ajv.compile(schema ?? false)
  return validate(value) ? '' : ajv.errorsText(validate.errors)
}

describe('the description of the service', () => {
  it('equals the file in the repository', async () => {
    await expect(`${JSON.stringify(described, null, 2)}\n`).toMatchFileSnapshot(
      '../../../spec/feedback-service.openapi.json',
    )
  })

  it('has every operation but the list of locations, which the specification does not have', () => {
    const { lookupLocations: _, ...specified } = routes
    expect([...operations.keys()].sort()).toEqual(Object.keys(specified).sort())
    for (const [operation, { method, path }] of Object.entries(specified))
      expect(described.paths[path]?.[method.toLowerCase()]?.operationId).toBe(operation)
  })

  it('matches the answers of the sandbox', async () => {
    const sandbox = await startSmallSandbox()
    const form = { 'Content-Type': 'application/x-www-form-urlencoded' }
    const visit = { name: 'A B', email: 'a@example.org', locationCode: 'LOC-1001', npi: '1', visitRecordId: 'V1' }
    const responses = {
      retrieveReviews: postJson(sandbox, operationPaths.retrieveReviews, { locationId: '1001' }),
      retrieveComments: getPath(sandbox, `${operationPaths.comments}?locationId=1001`),
      retrieveCommentsByForm: postJson(sandbox, operationPaths.comments, 'locationId=1001&personId=500001', form),
      createVisitRecords: postJson(sandbox, operationPaths.createVisitRecords, [visit]),
      syncLocations: postJson(sandbox, operationPaths.syncLocations, [{ code: 'N', active: true }, {}]),
      exportReviews: postJson(sandbox, operationPaths.exportReviews, {
        modifiedTimeFrom: epochTime,
        additionalFields: ['brand'],
      }),
      exportDeletedReviews: postJson(sandbox, operationPaths.exportDeletedReviews, { modifiedTimeFrom: epochTime }),
      lookupSources: getPath(sandbox, operationPaths.lookupSources),
      lookupCategories: getPath(sandbox, '/api/reputation/v1/lookup/categories'),
      issueToken: requestToken(sandbox),
    }
    expect(Object.keys(responses)).toEqual([...operations.keys()])
    for (const [operation, response] of Object.entries(responses)) {
      expect((await response).status, operation).toBe(200)
      const schema = operations.get(operation)?.responses['200']?.content['application/json'].schema
      expect(schemaErrors(schema, await readJsonAnswer(response)), operation).toBe('')
    }
  })
})

it('the sandbox serves its description, and a page that loads nothing from other hosts', async () => {
  const sandbox = await startSmallSandbox({ lookups: { sources: { method: 'POST', path: '/api/other/sources' } } })
  const description = await readJsonAnswer<typeof described>(getPath(sandbox, '/openapi.json'))
  expect(Object.keys(description.paths)).toContain('/api/other/sources')
  expect(description.paths['/api/other/sources']?.post?.operationId).toBe('lookupSources')
  expect((await postJson(sandbox, '/api/other/sources', {})).status).toBe(200)
  const page = await getPath(sandbox, '/docs')
  expect(page.headers.get('Content-Type')).toBe('text/html;charset=UTF-8')
  const text = await page.text()
  expect(text).not.toMatch(/https?:\/\//)
  const [, script] = /<script>(.*)<\/script>/s.exec(text) ?? []
  expect(() => new Function(script ?? 'no script')).not.toThrow()
})
