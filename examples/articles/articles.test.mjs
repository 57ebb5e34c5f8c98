import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { createSourceTest } from 'feedback-connector/testing'
import { startServer } from './server.mjs'

const program = fileURLToPath(new URL('build/articles.js', import.meta.url))

describe('the source of articles', () => {
  let server
  before(async () => {
    server = await startServer()
  })
  after(() => server.close())
  const createTest = (token = 'secret') => createSourceTest(program, { base_url: server.url, token })

  it('accepts a right token and refuses a wrong one', async () => {
    assert.deepEqual(await createTest().check(), { succeeded: true, message: '' })
    const refused = await createTest('wrong').check()
    assert.equal(refused.succeeded, false)
    assert.match(refused.message, /refuses the credentials/)
  })

  for (const protocol of ['airbyte', 'singer'])
    it(`reads everything over ${protocol}, then only what has changed`, async () => {
      const source = createTest()
      const first = await source.read(protocol)
      assert.equal(new Set(first.records.articles.map(({ id }) => id)).size, 230)
      assert.equal(first.records.authors.length, 7)
      server.putArticle({ id: 17, title: `Changed for ${protocol}`, author_id: 3 })
      const second = await source.read(protocol, first.state)
      assert.deepEqual(
        second.records.articles.map(({ title }) => title),
        [`Changed for ${protocol}`],
      )
      assert.deepEqual(second.records.authors, [])
    })
})
