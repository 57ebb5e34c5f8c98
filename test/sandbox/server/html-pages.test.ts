import { expect, it } from 'vitest'
import { describeService } from '../../../connector/sandbox/server/openapi'
import { getPath, operationPaths, startSmallSandbox } from '../../support/sandbox'

it('the root of the sandbox leads to its pages', async () => {
  const sandbox = await startSmallSandbox({})
  const page = await getPath(sandbox, '/')
  expect([page.status, page.headers.get('Content-Type')]).toEqual([200, 'text/html;charset=UTF-8'])
  const links = [...(await page.text()).matchAll(/href="([^"]+)"/g)].map(([, path]) => String(path))
  expect(links).toEqual(expect.arrayContaining(['/docs', '/openapi.json', '/__sandbox/truth', '/__sandbox/log']))
  for (const path of links)
    expect((await getPath(sandbox, `${path}?access_token=${sandbox.accessToken}`)).status, path).toBe(200)
})

it('the documentation has curl commands, indents JSON with all digits, and lists what fields mean', async () => {
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
  const { paths } = describeService() as {
    readonly paths: Readonly<Record<string, { readonly post?: { readonly responses: Responses } }>>
  }
  type Responses = Readonly<
    Record<string, { readonly content: { readonly 'application/json': { readonly schema: object } } }>
  >
  const answer = paths[operationPaths.exportReviews]?.post
  const fields = page.listFields(answer?.responses['200']?.content['application/json'].schema)
  expect(fields).toContainEqual(['reviews[].modifiedTime', 'string', 'Last modification'])
  expect(fields).toContainEqual([
    'reviews[].contents[].sentiments[].tonality',
    'string',
    'negative, positive or neutral',
  ])
})
