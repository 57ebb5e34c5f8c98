import { createHash } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import Ajv from 'ajv'
import addFormats from 'ajv-formats'
import { expect, it } from 'vitest'
import manifest from '../../package.json'
import { sendJson, startServer } from '../support/listen'
import { clone, edit, git, name, release, version } from '../support/release-clone'

/** What the specifications of in-toto's Statement (v1) and SLSA's provenance (v1) demand of the parts that we use. */
const digest = { type: 'object', minProperties: 1, additionalProperties: { type: 'string', pattern: '^[0-9a-f]+$' } }
const resource = {
  type: 'object',
  anyOf: [{ required: ['uri'] }, { required: ['digest'] }, { required: ['content'] }],
  properties: {
    name: { type: 'string' },
    uri: { type: 'string', format: 'uri' },
    digest,
    mediaType: { type: 'string' },
  },
  additionalProperties: false,
}
const validate = addFormats(new Ajv({ allErrors: true, strict: false })).compile({
  type: 'object',
  required: ['_type', 'subject', 'predicateType', 'predicate'],
  additionalProperties: false,
  properties: {
    _type: { const: 'https://in-toto.io/Statement/v1' },
    subject: { type: 'array', minItems: 1, items: { ...resource, required: ['digest'] } },
    predicateType: { const: 'https://slsa.dev/provenance/v1' },
    predicate: {
      type: 'object',
      required: ['buildDefinition', 'runDetails'],
      additionalProperties: false,
      properties: {
        buildDefinition: {
          type: 'object',
          required: ['buildType', 'externalParameters'],
          additionalProperties: false,
          properties: {
            buildType: { type: 'string', format: 'uri' },
            externalParameters: { type: 'object', minProperties: 1 },
            internalParameters: { type: 'object' },
            resolvedDependencies: { type: 'array', items: resource },
          },
        },
        runDetails: {
          type: 'object',
          required: ['builder'],
          additionalProperties: false,
          properties: {
            builder: { type: 'object', required: ['id'], properties: { id: { type: 'string', format: 'uri' } } },
            metadata: {
              type: 'object',
              additionalProperties: false,
              properties: {
                invocationId: { type: 'string' },
                startedOn: { type: 'string', format: 'date-time' },
                finishedOn: { type: 'string', format: 'date-time' },
              },
            },
            byproducts: { type: 'array', items: resource },
          },
        },
      },
    },
  },
})

type Statement = {
  readonly subject: ReadonlyArray<{ readonly name: string; readonly digest: Record<string, string> }>
  readonly predicate: {
    readonly buildDefinition: {
      readonly resolvedDependencies: ReadonlyArray<{
        readonly name: string
        readonly uri?: string
        readonly digest: Record<string, string>
      }>
    }
    readonly runDetails: { readonly byproducts: ReadonlyArray<{ name: string; digest: Record<string, string> }> }
  }
}

it('builds the package twice, lists its parts, states its provenance and publishes it', async () => {
  const registry = await startServer(({ method }, response) =>
    method === 'PUT' ? sendJson(response, 201, { ok: true }) : sendJson(response, 404, { error: 'not found' }),
  )
  // npm installs from its own registry, and publishes to this one.
  edit('package.json', '"license"', `"publishConfig": { "registry": "${registry.url}/" }, "license"`)
  git('commit', '--quiet', '--all', '--message', 'Publish here')
  const { status, stdout, stderr } = await release(['--publish'], {
    [`npm_config_//127.0.0.1:${registry.port}/:_authToken`]: 'token',
  })
  expect([status, stderr]).toEqual([0, ''])
  expect(stdout).toContain('npm publish --dry-run warns of nothing')

  const out = join(clone, 'release', version)
  const tarball = `${name}-${version}.tgz`
  expect(readdirSync(out).sort()).toEqual([`${name}-${version}.sbom.json`, tarball, 'provenance.json'].sort())
  const hash = (path: string, algorithm = 'sha256') => createHash(algorithm).update(readFileSync(path)).digest('hex')

  const statement = JSON.parse(readFileSync(join(out, 'provenance.json'), 'utf8')) as Statement
  expect(validate(statement) ? [] : validate.errors).toEqual([])
  expect(statement.subject).toEqual([
    { name: tarball, digest: { sha256: hash(join(out, tarball)), sha512: hash(join(out, tarball), 'sha512') } },
  ])
  expect(statement.predicate.buildDefinition.resolvedDependencies.map(({ digest }) => digest)).toEqual([
    { gitCommit: git('rev-parse', 'HEAD') },
    { sha256: hash(join(clone, 'package-lock.json')) },
  ])
  const list = join(out, `${name}-${version}.sbom.json`)
  expect(statement.predicate.runDetails.byproducts).toMatchObject([{ digest: { sha256: hash(list) } }])

  const parts = JSON.parse(readFileSync(list, 'utf8'))
  expect(parts).toMatchObject({
    bomFormat: 'CycloneDX',
    metadata: { component: { name, version, purl: `pkg:npm/${name}@${version}` } },
  })
  const names = parts.components.map((part: { readonly name: string }) => part.name)
  expect(names).toEqual(expect.arrayContaining(Object.keys(manifest.dependencies)))
  expect(names.filter((part: string) => part in manifest.devDependencies)).toEqual([])

  const [published, ...more] = registry.seen.filter(({ method }) => method === 'PUT')
  expect([published?.url, more]).toEqual([`/${name}`, []])
  const sent = JSON.parse(published?.body ?? '')._attachments[tarball].data
  expect(createHash('sha256').update(Buffer.from(sent, 'base64')).digest('hex')).toBe(hash(join(out, tarball)))
  expect(git('rev-parse', `v${version}^{commit}`)).toBe(git('rev-parse', 'HEAD'))
})
