import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import manifest from '../package.json'
import lock from '../package-lock.json'
import { metadataErrors } from './support/airbyte-metadata'

const root = join(__dirname, '..')
const text = (path: string): string => readFileSync(join(root, path), 'utf8')

type Metadata = {
  readonly data: {
    readonly definitionId: string
    readonly dockerRepository: string
    readonly dockerImageTag: string
    readonly license: string
    readonly documentationUrl: string
    readonly icon: string
    readonly tags: ReadonlyArray<string>
    readonly maxSecondsBetweenMessages: number
    readonly allowedHosts: { readonly hosts: ReadonlyArray<string> }
    readonly connectorType: string
    readonly suggestedStreams?: { readonly streams: ReadonlyArray<string> }
  }
}

/** The instructions of each stage of the Dockerfile, after those of the stages it is built from. */
const stages = (() => {
  const found = new Map<string, ReadonlyArray<string>>()
  let name = ''
  for (const line of text('Dockerfile').replaceAll('\\\n', ' ').split('\n')) {
    const [, base = '', stage = ''] = /^FROM (\S+) AS (\S+)$/.exec(line) ?? []
    if (stage !== '') {
      name = stage
      found.set(name, found.get(base) ?? [line])
    } else if (line !== '' && !line.startsWith('#')) found.set(name, [...(found.get(name) ?? []), line])
  }
  return found
})()

type Shape = {
  readonly properties?: Readonly<Record<string, Shape>>
  readonly oneOf?: ReadonlyArray<Shape>
  readonly maximum?: number
}

/** What spec/ declares for a key of the config, in the first alternative that has it. */
const configAt = (target: string, path: string): Shape | undefined => {
  const start: ReadonlyArray<Shape> = [JSON.parse(text(`spec/${target}.json`)) as Shape]
  const found = path
    .split('.')
    .reduce(
      (shapes, key) =>
        shapes
          .flatMap((shape) => [shape, ...(shape.oneOf ?? [])])
          .flatMap(({ properties = {} }) => properties[key] ?? []),
      start,
    )
  return found[0]
}

const targets = [
  { target: 'source', file: 'metadata.yaml', id: '4292254d-b6c0-4d89-a049-de488cb2028b' },
  { target: 'destination', file: 'metadata.destination.yaml', id: '7c1d2f6e-3b0a-4e57-9a44-1f8e5b6d0c93' },
]

describe.each(targets)('the image and listing of $target', ({ target, file, id }) => {
  const metadata = parse(text(file)) as Metadata
  const { data } = metadata
  const stage = (stages.get(target) ?? []).join('\n')
  const [, entrypoint = ''] = /AIRBYTE_ENTRYPOINT=(\S+)/.exec(stage) ?? []

  it('satisfies the metadata schema', () => {
    expect(metadataErrors(metadata)).toEqual([])
    expect(metadataErrors({ ...metadata, more: 1 })).not.toEqual([])
  })

  it('has its fixed id, its type, the licence of the package and its language', () => {
    expect(data.connectorType).toBe(target)
    expect(data.definitionId).toBe(id)
    expect(data.license).toBe(manifest.license)
    expect(data.tags).toContain('language:typescript')
  })

  it('has the labels by which any registry shows an image', () => {
    const prefix = 'org.opencontainers.image.'
    const labels = [...stage.matchAll(/\borg\.opencontainers\.image\.([a-z.]+)=("[^"]*"|\S+)/g)]
    expect(Object.fromEntries(labels.map(([, name = '', value = '']) => [`${prefix}${name}`, value]))).toEqual({
      [`${prefix}title`]: data.dockerRepository.split('/')[1],
      [`${prefix}description`]: expect.stringMatching(/^"Airbyte .+"$/),
      [`${prefix}version`]: manifest.version,
      [`${prefix}licenses`]: manifest.license,
      [`${prefix}documentation`]: data.documentationUrl,
      [`${prefix}base.name`]: `docker.io/library/\${BASE_NAME}`,
      [`${prefix}base.digest`]: `\${BASE_DIGEST}`,
    })
  })

  it('has one version everywhere', () => {
    const [, label] = /io\.airbyte\.version=(\S+)/.exec(stage) ?? []
    expect([data.dockerImageTag, label, lock.version, lock.packages[''].version]).toEqual(
      Array(4).fill(manifest.version),
    )
  })

  it('has one name everywhere', () => {
    expect(stage).toContain(`io.airbyte.name=${data.dockerRepository} `)
    expect(data.dockerRepository.split('/')[1]).toBe(`${target}-feedback`)
  })

  it('has the same absolute path as entry point and in AIRBYTE_ENTRYPOINT', () => {
    expect(stage).toContain(`ENTRYPOINT ["${entrypoint}"]`)
    expect(entrypoint).toBe(`/connector/${(manifest.bin as Record<string, string>)[`${target}-feedback`]}`)
  })

  it('runs as a user other than root, in UTC, on the expected base image', () => {
    expect(stage).toMatch(/^FROM \$\{BASE_NAME\}@\$\{BASE_DIGEST\} /)
    expect(text('Dockerfile')).toMatch(/^ARG BASE_NAME=node:24-bookworm-slim\nARG BASE_DIGEST=sha256:[0-9a-f]{64}$/m)
    expect(stage).toMatch(/^USER [1-9]\d*:[1-9]\d*$/m)
    expect(stage).toMatch(/^ENV .*\bTZ=UTC\b/m)
  })

  it('has a square icon', () => {
    const [, width, height] = /viewBox="0 0 (\d+) (\d+)"/.exec(text(data.icon)) ?? []
    expect(width).toBeDefined()
    expect(width).toBe(height)
  })

  it('suggests streams that exist', () => {
    const suggested = data.suggestedStreams?.streams ?? []
    expect(suggested.length > 0).toBe(target === 'source')
    expect(suggested.filter((name) => !existsSync(join(root, 'catalog', `${name}.json`)))).toEqual([])
  })

  it('allows only hosts that a key of its config names', () => {
    const paths = data.allowedHosts.hosts.map((host) => /^\$\{([\w.]+)\}$/.exec(host)?.[1] ?? host)
    expect(paths.length).toBeGreaterThan(0)
    expect(paths.filter((path) => configAt(target, path) === undefined)).toEqual([])
  })

  it('may be silent for longer than the longest configurable wait', () => {
    const { maximum } = configAt(target, 'timeouts.max_wait_seconds') ?? {}
    expect(data.maxSecondsBetweenMessages).toBeGreaterThan(maximum ?? Number.POSITIVE_INFINITY)
  })
})

describe('packaging', () => {
  it('builds the source by default', () => {
    expect([...stages.keys()].at(-1)).toBe('source')
  })

  it('gives the acceptance tests existing files, and our own a future state of every incremental stream', () => {
    const config = text('acceptance-test-config.yml')
    const paths = [...config.matchAll(/_path: (test\/\S+)/g)].map(([, path = '']) => path)
    expect(paths.length).toBeGreaterThan(0)
    expect(paths.filter((path) => !existsSync(join(root, path)))).toEqual([])
    const states = JSON.parse(text('test/acceptance/future_state.json')) as ReadonlyArray<{
      readonly stream: { readonly stream_descriptor: { readonly name: string } }
    }>
    const incremental = readdirSync(join(root, 'catalog'))
      .map(
        (file) => JSON.parse(text(`catalog/${file}`)) as { name: string; supported_sync_modes: ReadonlyArray<string> },
      )
      // The config of these tests has no `audit`, so it has no stream of that name.
      .filter(({ name, supported_sync_modes }) => supported_sync_modes.includes('incremental') && name !== 'sync_audit')
    expect(states.map(({ stream }) => stream.stream_descriptor.name).sort()).toEqual(
      incremental.map(({ name }) => name).sort(),
    )
  })

  it('copies into the image every model, which feedback sync makes views of', () => {
    expect(text('.dockerignore').split('\n')).toContain('!dbt/models')
    expect(text('Dockerfile')).toContain('COPY --from=build /connector/dbt/models /connector/dbt/models\n')
  })

  it('copies into the image only what the build reads', () => {
    const copied = text('.dockerignore').split('\n')
    expect(copied[0]).toBe('*')
    expect(copied.filter((line) => line.startsWith('!') && !existsSync(join(root, line.slice(1))))).toEqual([])
  })

  it('keeps out of git what the documents write: tokens, and data of people', () => {
    const written = [
      'README.md',
      ...readdirSync('docs').flatMap((name) => (name.endsWith('.md') ? [`docs/${name}`] : [])),
    ]
      .flatMap(
        (name) => readFileSync(name, 'utf8').match(/(?<=[ >"/])[\w./-]+\.(json|jsonl|duckdb|html)(?=[ "\n`])/g) ?? [],
      )
      .filter(
        (path) =>
          /(^|\/)(config|state|rejected|run|messages|reviews|report)[\w-]*\.\w+$/.test(path) && !/^[./]/.test(path),
      )
    expect(written).toEqual(
      expect.arrayContaining(['secrets/config.json', 'config.json', 'reviews.duckdb', 'report.html']),
    )
    const ignored = execFileSync('git', ['check-ignore', '--no-index', ...new Set(written)], { encoding: 'utf8' })
    expect(ignored.trim().split('\n').sort()).toEqual([...new Set(written)].sort())
  })

  it('has a source file for each bin', () => {
    const sources = Object.values(manifest.bin).map((path) =>
      path.replace(/^build\//, 'connector/').replace(/js$/, 'ts'),
    )
    expect(sources.filter((path) => !existsSync(join(root, path)))).toEqual([])
  })

  it.each(Object.entries(manifest.bin))('starts %s by its link, by its path and by node', (name, path) => {
    const ways = [[join(root, 'node_modules', '.bin', name)], [join(root, path)], [process.execPath, join(root, path)]]
    const helps = ways.map(([command = '', ...args]) => execFileSync(command, [...args, '--help']).toString())
    expect(helps[0]).toContain(`Usage: ${name}`)
    expect(new Set(helps).size).toBe(1)
  })

  it('has the code and the declarations that each export names', () => {
    const paths = Object.values(manifest.exports).flatMap((named) =>
      typeof named === 'string' ? [named] : Object.values(named),
    )
    expect(paths).toHaveLength(7)
    expect(paths.filter((path) => !existsSync(join(root, path)))).toEqual([])
  })

  it('packs only what runs, with the declarations of the kit', () => {
    const answer = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], { cwd: root })
    const [{ files }] = JSON.parse(answer.toString()) as [{ files: ReadonlyArray<{ path: string }> }]
    const wanted = [
      /^build\/.*\.js$/,
      /^build\/(cdk\/.*|api\/http\/json-client)\.d\.ts$/,
      /^(spec|catalog)\/\w+\.json$/,
      /^dbt\/.*\.(sql|yml|csv|md)$/,
      /^(package\.json|README\.md|LICENSE|icon\.svg)$/,
    ]
    const paths = files.map(({ path }) => path)
    expect(paths.filter((path) => !wanted.some((pattern) => pattern.test(path)))).toEqual([])
    expect(files.map(({ path }) => path)).toContain('dbt/models/marts/critical_alerts.sql')
  })

  it('locks a version of every optional package, so that each platform can install', () => {
    const packages = lock.packages as Record<string, { readonly optionalDependencies?: Record<string, string> }>
    const missing = Object.values(packages)
      .flatMap(({ optionalDependencies = {} }) => Object.keys(optionalDependencies))
      .filter((name) => !Object.hasOwn(packages, `node_modules/${name}`))
    expect(missing).toEqual([])
  })
})

it('the version is the same everywhere: in labels, metadata, the dbt package and the commands of the documents', () => {
  expect(() => execFileSync(process.execPath, ['scripts/versions.mjs', '--check'], { cwd: root })).not.toThrow()
})

it('the list of parts has every package that production needs, with its license, and no other', () => {
  const list = 'npm sbom --silent --package-lock-only --sbom-format=cyclonedx | node scripts/sbom.mjs'
  const { components, dependencies } = JSON.parse(execFileSync('sh', ['-c', list], { cwd: root, encoding: 'utf8' }))
  type Part = { readonly 'bom-ref': string; readonly licenses?: ReadonlyArray<object> }
  const listed = components.map((part: Part) => [part['bom-ref'], part.licenses?.length])
  type Locked = { readonly version: string; readonly dev?: boolean }
  const needed = Object.entries<Locked>(lock.packages as Readonly<Record<string, Locked>>)
    .filter(([path, { dev }]) => path !== '' && dev !== true)
    .map(([path, { version }]) => `${path.split('node_modules/').at(-1)}@${version}`)
  // One that a tool for development needs too, and that npm itself leaves out with --omit=dev.
  expect(needed).toContain(`detect-libc@${lock.packages['node_modules/detect-libc'].version}`)
  expect(listed.sort()).toEqual([...new Set(needed)].map((part) => [part, 1]).sort())
  const known = new Set([`feedback-connector@${manifest.version}`, ...needed])
  const named = dependencies.flatMap(({ ref, dependsOn }: { ref: string; dependsOn: string[] }) => [ref, ...dependsOn])
  expect(named.filter((reference: string) => !known.has(reference))).toEqual([])
})
