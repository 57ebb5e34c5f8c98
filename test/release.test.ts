import { execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import Ajv from 'ajv'
import addFormats from 'ajv-formats'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import manifest from '../package.json'
import { sendJson, startServer } from './support/listen'

const root = join(__dirname, '..')
const folder = mkdtempSync(join(tmpdir(), 'release-test-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const clone = join(folder, 'clone')
const { name, version } = manifest
const git = (...args: ReadonlyArray<string>) =>
  execFileSync('git', ['-c', 'user.name=Test', '-c', 'user.email=test@example.com', ...args], {
    cwd: clone,
    encoding: 'utf8',
  }).trim()
const edit = (path: string, pattern: string | RegExp, by: string) => {
  const before = readFileSync(join(clone, path), 'utf8')
  const after = before.replace(pattern, by)
  expect(after).not.toBe(before)
  writeFileSync(join(clone, path), after)
}

/** A repository with the files of this checkout as they are now, ready to be released. */
beforeAll(() => {
  const files = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: root })
  for (const file of files.toString().split('\0').filter(Boolean)) {
    if (!existsSync(join(root, file))) continue
    mkdirSync(dirname(join(clone, file)), { recursive: true })
    cpSync(join(root, file), join(clone, file))
  }
  git('init', '--quiet')
  git('config', 'user.name', 'Test')
  git('config', 'user.email', 'test@example.com')
  edit('CHANGELOG.md', /^## .*$/m, `## ${version} (2026-01-02)`)
  git('add', '--all')
  git('commit', '--quiet', '--message', 'Release')
  git('tag', 'start')
})
beforeEach(() => {
  git('reset', '--quiet', '--hard', 'start')
  git('clean', '--quiet', '--force', '-d')
  for (const tag of git('tag', '--list', 'v*').split('\n').filter(Boolean)) git('tag', '--delete', tag)
})

const release = (args: ReadonlyArray<string>, env: Record<string, string> = {}) =>
  new Promise<{ status: number | null; stdout: string; stderr: string }>((resolve) => {
    const child = spawn(process.execPath, ['scripts/release.mjs', ...args], {
      cwd: clone,
      env: { ...process.env, ...env },
    })
    let stdout = ''
    let stderr = ''
    child.stdout.on('data', (chunk) => {
      stdout += chunk
    })
    child.stderr.on('data', (chunk) => {
      stderr += chunk
    })
    child.on('close', (status) => resolve({ status, stdout, stderr }))
  })

describe('a release that must not be made', () => {
  const commit = () => git('commit', '--quiet', '--all', '--message', 'Change')
  it.each<[string, () => void, ReadonlyArray<string>, RegExp]>([
    ['of changes', () => edit('README.md', '#', '# '), [], /changes that are not committed:\n.*README\.md/],
    ['of another file', () => writeFileSync(join(clone, 'more.ts'), ''), [], /not committed:\n.*more\.ts/],
    [
      'of two versions',
      () => edit('metadata.yaml', /dockerImageTag: .*/, 'dockerImageTag: 9.9.9'),
      [],
      /metadata\.yaml has the version 9\.9\.9, package\.json has/,
    ],
    [
      'of an image label of another version',
      () => edit('Dockerfile', /image\.version=\S+/, 'image.version=9.9.9'),
      [],
      /Dockerfile has the version 9\.9\.9/,
    ],
    [
      'of a page with another version',
      () => edit('docs/docker.md', /source-feedback:\S+ check/, 'source-feedback:9.9.9-rc.1 check'),
      [],
      /docs\/docker\.md has the version 9\.9\.9-rc\.1, package\.json has/,
    ],
    [
      'of changes without a version',
      () => edit('CHANGELOG.md', /^## .*$/m, '## Unreleased'),
      [],
      /CHANGELOG\.md begins with "Unreleased"\. A release of/,
    ],
    [
      'without a date',
      () => edit('CHANGELOG.md', / \(2026-01-02\)/, ''),
      [],
      /CHANGELOG\.md begins with "[\d.]+"\. A release of/,
    ],
    [
      'from a base image without a digest',
      () => edit('Dockerfile', /^FROM \S+ AS runtime/m, 'FROM node:24-bookworm-slim AS runtime'),
      [],
      /"FROM node:24-bookworm-slim AS runtime" has no digest/,
    ],
    [
      'from a base image that any digest fits',
      () => edit('Dockerfile', /^ARG BASE_DIGEST=.*$/m, 'ARG BASE_DIGEST'),
      [],
      /not pinned: no ARG BASE_DIGEST/,
    ],
    ['from half of a digest', () => undefined, ['--base-digest', 'sha256:abc'], /not pinned: sha256:abc is no digest/],
    [
      'of a private package',
      () => edit('package.json', '"license"', '"private": true, "license"'),
      [],
      /package\.json says private/,
    ],
    ['of a version that is released', () => git('tag', `v${version}`), [], new RegExp(`tag v${version} exists`)],
    ['of images to nowhere', () => undefined, ['--publish', '--images'], /needs --push-to/],
    ['of a trial', () => undefined, ['--publish', '--base-digest', 'sha256:abc'], /for a trial/],
  ])('%s is refused', async (what, change, args, message) => {
    change()
    if (!/^of (changes|another file)$/.test(what) && git('status', '--porcelain') !== '') commit()
    const { status, stdout, stderr } = await release(args)
    expect([status, stderr]).toEqual([1, expect.stringMatching(message)])
    expect(stderr).not.toContain('    at ')
    expect(stdout).not.toContain('package is the same')
  })
})

describe('a base image with an old Node.js', () => {
  const base = `node:24-bookworm-slim@sha256:`
  /** A buildah whose base image holds this version of Node.js; it keeps its arguments in a file. */
  const installBuildah = (node: string) => {
    const bin = mkdtempSync(join(folder, 'bin-'))
    const lines = ['#!/bin/sh', `echo "$*" >>${bin}/log`, `case $1 in from) echo base-1;; run) echo ${node};; esac`]
    writeFileSync(join(bin, 'buildah'), `${lines.join('\n')}\n`, { mode: 0o755 })
    return { PATH: `${bin}:${process.env.PATH}`, log: () => readFileSync(join(bin, 'log'), 'utf8') }
  }

  it('is refused before anything is built, and its container removed', async () => {
    const { PATH, log } = installBuildah('v24.22.0')
    const { status, stdout, stderr } = await release(['--images'], { PATH })
    expect([status, stderr]).toEqual([
      1,
      'The base image: Node v24.22.0 is older than 24.22.1. docs/release.md says how to renew it.\n',
    ])
    expect(log()).toMatch(new RegExp(`^from --quiet --pull-always ${base}[0-9a-f]{64}\nrun base-1 .*\nrm base-1\n$`))
    expect(stdout).not.toContain('package is the same')
  })

  it('is refused for a trial too', async () => {
    const { PATH, log } = installBuildah('v20.20.2')
    const { stderr } = await release(['--images', '--base-digest', `sha256:${'a'.repeat(64)}`], { PATH })
    expect(stderr).toMatch(/^The base image: Node v20\.20\.2 has no floor in scripts\/node-floor\.mjs/)
    expect(log()).toContain(`from --quiet --pull-never ${base}${'a'.repeat(64)}`)
  })

  it.each([
    ['v22.23.3', /older than 22\.23\.4/],
    ['v22.23.4', undefined],
    ['v24.9.9', /older than 24\.22\.1/],
    ['v24.22.1', undefined],
    ['v24.23.0', undefined],
    ['v25.99.0', /no floor/],
    ['v26.12.0', /older than 26\.12\.1/],
    ['v26.13.0', undefined],
    ['', /no version/],
    ['v24.22.1-rc.1', /no version/],
  ])('is told by its version: %s', async (version, problem) => {
    const { findNodeProblem } = await import(join(root, 'scripts/node-floor.mjs'))
    const found = findNodeProblem(version)
    if (problem === undefined) expect(found).toBeUndefined()
    else expect(found).toMatch(problem)
  })

  it('has the floors that SECURITY.md names', async () => {
    const { nodeFloors } = await import(join(root, 'scripts/node-floor.mjs'))
    const section = /^## Node\.js\n\n(.*?)(?=^## )/ms.exec(readFileSync(join(root, 'SECURITY.md'), 'utf8'))?.[1] ?? ''
    expect(section.match(/\d+\.\d+\.\d+/g)).toEqual(Object.values(nodeFloors))
  })
})

it('npm version writes a new version wherever the old one stands', () => {
  execFileSync('npm', ['version', '--no-git-tag-version', '9.8.7-rc.1'], { cwd: clone })
  const changed = git('diff', '--name-only').split('\n')
  expect(changed).toEqual(
    expect.arrayContaining(['Dockerfile', 'dbt/dbt_project.yml', 'docs/dbt.md', 'docs/meltano.md']),
  )
  expect(git('diff', '--unified=0')).toContain('+npm install ./feedback-connector-9.8.7-rc.1.tgz')
  const quoted = version.replaceAll('.', '\\.')
  // What is left is history, and the version of the service's own specification.
  const left = execFileSync('git', ['grep', '-lE', `(^|[^0-9.])${quoted}([^0-9.-]|$)`], {
    cwd: clone,
    encoding: 'utf8',
  })
  const history =
    /^(CHANGELOG\.md|docs\/integrations\/|docs\/state\.md|acceptance-test-config\.yml|bench\/|connector\/|package-lock\.json|test\/)/
  expect(
    left
      .trim()
      .split('\n')
      .filter((path) => !history.test(path)),
  ).toEqual([])
})

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

it('builds the package twice, lists its parts, states its provenance and publishes it', {
  timeout: 1_200_000,
}, async () => {
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
