import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { clone, edit, folder, git, release, root, version } from './support/release-clone'

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
      () => edit('docs/running.md', /source-feedback:\S+ \./, 'source-feedback:9.9.9-rc.1 .'),
      [],
      /docs\/running\.md has the version 9\.9\.9-rc\.1, package\.json has/,
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
    [
      'from half of a digest',
      () => undefined,
      ['--base-digest', 'sha256:abc'],
      /not pinned: sha256:abc is not a digest/,
    ],
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
    ['', /not a version/],
    ['v24.22.1-rc.1', /not a version/],
  ])('is detected by its version: %s', async (version, problem) => {
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

it('npm version writes a new version wherever the old one is', () => {
  execFileSync('npm', ['version', '--no-git-tag-version', '9.8.7-rc.1'], { cwd: clone })
  const changed = git('diff', '--name-only').split('\n')
  expect(changed).toEqual(
    expect.arrayContaining(['Dockerfile', 'dbt/dbt_project.yml', 'docs/models.md', 'docs/meltano.md']),
  )
  expect(git('diff', '--unified=0')).toContain('+npm install ./feedback-connector-9.8.7-rc.1.tgz')
  const quoted = version.replaceAll('.', '\\.')
  // What is left is history, and the version of the service's own specification.
  const left = execFileSync('git', ['grep', '-lE', `(^|[^0-9.])${quoted}([^0-9.-]|$)`], {
    cwd: clone,
    encoding: 'utf8',
  })
  const history =
    /^(CHANGELOG\.md|docs\/integrations\/|acceptance-test-config\.yml|bench\/|connector\/|package-lock\.json|test\/)/
  expect(
    left
      .trim()
      .split('\n')
      .filter((path) => !history.test(path)),
  ).toEqual([])
})
