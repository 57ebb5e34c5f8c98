import Ajv2020 from 'ajv/dist/2020'
import addFormats from 'ajv-formats'
import { describe, expect, it } from 'vitest'
import { routes } from '../../../connector/api/routes'
import { describeService } from '../../../connector/sandbox/server/openapi'
import { epochTime, getPath, operationPaths, postJson, readJsonAnswer, startSmallSandbox } from '../../support/sandbox'

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
    const { applicationId, applicationSecret } = sandbox
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
      issueToken: postJson(sandbox, '/oauth/token', { applicationId, applicationSecret }),
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

it('the root of the sandbox leads to its pages', async () => {
  const sandbox = await startSmallSandbox({})
  const page = await getPath(sandbox, '/')
  expect([page.status, page.headers.get('Content-Type')]).toEqual([200, 'text/html;charset=UTF-8'])
  const links = [...(await page.text()).matchAll(/href="([^"]+)"/g)].map(([, path]) => String(path))
  expect(links).toEqual(expect.arrayContaining(['/docs', '/openapi.json', '/__sandbox/truth', '/__sandbox/log']))
  for (const path of links)
    expect((await getPath(sandbox, `${path}?access_token=${sandbox.accessToken}`)).status, path).toBe(200)
})

it('the documentation page has a curl command, indents JSON with all digits, and lists what each field means', async () => {
  const sandbox = await startSmallSandbox({})
  const [, script = ''] = /<script>(.*)<\/script>/s.exec(await (await getPath(sandbox, '/docs')).text()) ?? []
  type Functions = {
    readonly curlCommand: (request: object) => string
    readonly indentJson: (text: string) => string
    readonly listFields: (schema: unknown) => ReadonlyArray<ReadonlyArray<string>>
  }
  const definitions = script.slice(0, script.indexOf("fetch('/openapi.json')"))
  const page = new Function('location', `${definitions}; return { curlCommand, indentJson, listFields }`)({
    origin: sandbox.url,
  }) as Functions
  expect(page.curlCommand({ url: '/x', method: 'POST', headers: { accessToken: '' }, body: `{"a":"it's"}` })).toBe(
    `curl -X POST '${sandbox.url}/x' \\\n  -H 'accessToken: YOUR_TOKEN' \\\n  --data '{"a":"it'\\''s"}'`,
  )
  expect(page.indentJson('{"id":9007199254740993,"list":[1,"a,{b}"],"none":[],"empty":{}}')).toBe(
    '{\n  "id": 9007199254740993,\n  "list": [\n    1,\n    "a,{b}"\n  ],\n  "none": [],\n  "empty": {}\n}',
  )
  const answer =
    described.paths['/api/reputation/v1/export/reviews']?.post ??
    Object.values(described.paths)
      .flatMap(Object.values)
      .find(({ operationId }) => operationId === 'exportReviews')
  const fields = page.listFields(answer?.responses['200']?.content['application/json'].schema)
  expect(fields).toContainEqual(['reviews[].modifiedTime', 'string', 'Last modification'])
  expect(fields).toContainEqual([
    'reviews[].contents[].sentiments[].tonality',
    'string',
    'negative, positive or neutral',
  ])
})
