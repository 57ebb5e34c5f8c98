import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse, stringify } from 'yaml'
import manifest from '../../package.json'
import lock from '../../package-lock.json'
import type { AirbyteConnector } from './airbyte-rules'

const root = join(__dirname, '..', '..')
const read = (path: string): string => readFileSync(join(root, path), 'utf8')
const readIfThere = (path: string): string | undefined => (existsSync(join(root, path)) ? read(path) : undefined)

/** The text of each file of the repository, except tests and binary files. */
const repositoryFiles = (): ReadonlyMap<string, string> =>
  new Map(
    execFileSync('git', ['ls-files', '-z'], { cwd: root, encoding: 'utf8' })
      .split('\0')
      .filter((path) => path !== '' && !path.startsWith('test/') && existsSync(join(root, path)))
      .map((path) => [path, read(path)] as const),
  )

const files = repositoryFiles()

/** The two connectors as this repository has them. */
export const airbyteConnectors: ReadonlyArray<AirbyteConnector> = (['source', 'destination'] as const).map((kind) => ({
  kind,
  metadata: read(kind === 'source' ? 'metadata.yaml' : 'metadata.destination.yaml'),
  page: readIfThere(`docs/integrations/${kind}s/feedback.md`),
  guide: readIfThere(`docs/integrations/${kind}s/feedback-migrations.md`),
  icon: readIfThere('icon.svg'),
  spec: JSON.parse(read(`spec/${kind}.json`)),
  manifest,
  lock: lock.packages[''],
  files,
  released: undefined,
  today: new Date(),
}))

type Data = Readonly<Record<string, unknown>>

const withData =
  (change: (data: Data) => Data) =>
  (connector: AirbyteConnector): AirbyteConnector => {
    const metadata = parse(connector.metadata) as { readonly data: Data }
    return { ...connector, metadata: stringify({ ...metadata, data: change(metadata.data) }, { version: '1.1' }) }
  }

const withPage =
  (change: (page: string) => string | undefined) =>
  (connector: AirbyteConnector): AirbyteConnector => ({ ...connector, page: change(connector.page ?? '') })

const breaking = (change: object) =>
  withData((data) => ({
    ...data,
    dockerImageTag: '1.0.0',
    releases: { breakingChanges: { '1.0.0': { upgradeDeadline: '2999-01-01', message: 'More.', ...change } } },
  }))

const without = (text: string) => withPage((page) => page.replace(text, ''))

/** Another text under each heading of that name. */
const withSection = (heading: string) =>
  withPage((page) => page.replace(new RegExp(`^(#+ ${heading}\n)[^#]*`, 'gm'), '$1\nNothing of it.\n\n'))

type BrokenConnector = {
  /** The rule that finds it. */
  readonly rule: string
  readonly what: string
  readonly spoil: (connector: AirbyteConnector) => AirbyteConnector
}

const broken = (rule: string, what: string, spoil: BrokenConnector['spoil']): BrokenConnector => ({ rule, what, spoil })

const valid = 'Connectors must have valid metadata.yaml file'
const guide = 'Breaking changes must be accompanied by a migration guide'
const order = 'Connectors documentation headers structure, naming and order follow our guidelines'
const prerequisites = 'Prerequisites section of the documentation describes all required fields from specification'
const section = (heading: string) => `'${heading}' section of the documentation follows our guidelines`

/** One thing wrong each. */
export const brokenConnectors: ReadonlyArray<BrokenConnector> = [
  broken(guide, 'a breaking change without a guide', breaking({})),
  broken(guide, 'a guide without the version', (connector) => ({
    ...breaking({})(connector),
    guide: '# Feedback Migration Guide\n\n## Upgrading to 0.9.0\n',
  })),
  broken(guide, 'versions that ascend', (connector) => ({
    ...breaking({})(connector),
    guide: '# Feedback Migration Guide\n\n## Upgrading to 0.9.0\n\n## Upgrading to 1.0.0\n',
  })),
  broken(
    'Connectors must have user facing documentation',
    'no page',
    withPage(() => undefined),
  ),
  broken(
    'Links used in connector documentation are valid',
    'a link to nowhere',
    withPage((page) => `${page}\n[there](https://docs.airbyte.invalid/nothing)\n`),
  ),
  broken(order, 'no section for streams', without('## Supported Streams\n')),
  broken(
    order,
    'the changelog before the sync modes',
    withPage((page) => page.replace('## Changelog', '## Log').replace('## Supported sync modes', '## Changelog')),
  ),
  broken(
    order,
    'a heading of its own where none may be',
    withPage((page) => page.replace('## Setup guide', '## More\n\n## Setup guide')),
  ),
  broken(prerequisites, 'no base URL', without('(Base URL)')),
  broken(
    prerequisites,
    'no credentials',
    withPage((page) => page.replace(/^- Either an access token[\s\S]*?\n(?=- )/m, '')),
  ),
  broken('Main Source Section of the documentation follows our guidelines', 'another text', withSection('Feedback')),
  broken(section('For Airbyte Cloud:'), 'another text', withSection('For Airbyte Cloud:')),
  broken(section('For Airbyte Open Source:'), 'another text', withSection('For Airbyte Open Source:')),
  broken(section('Supported sync modes'), 'another text', withSection('Supported sync modes')),
  broken(
    section('Tutorials'),
    'another text',
    withPage((page) => page.replace('## Changelog', '### Tutorials\n\nRead.\n\n## Changelog')),
  ),
  broken(section('IP allow list'), 'another text', withSection('IP allow list')),
  broken(
    section('Changelog'),
    'a table that stands open',
    withPage((page) => page.replace('<details>\n  <summary>Expand to review</summary>', '')),
  ),
  broken(
    'Connectors must have a changelog entry for each version',
    'a version without an entry',
    withData((data) => ({ ...data, dockerImageTag: '0.1.1' })),
  ),
  broken(
    valid,
    'a key that is unknown',
    withData((data) => ({ ...data, colour: 'blue' })),
  ),
  broken(
    valid,
    'no repository',
    withData(({ dockerRepository: _, ...data }) => data),
  ),
  broken(
    valid,
    'an id that is none',
    withData((data) => ({ ...data, definitionId: '7' })),
  ),
  broken(
    valid,
    'an unknown support level',
    withData((data) => ({ ...data, supportLevel: 'gold' })),
  ),
  broken(
    valid,
    'an external page without an address',
    withData((data) => ({ ...data, externalDocumentationUrls: [{ title: 'API' }] })),
  ),
  broken(
    valid,
    'an external page of an unknown type',
    withData((data) => ({
      ...data,
      externalDocumentationUrls: [{ title: 'API', url: 'https://feedback.example.com', type: 'poem' }],
    })),
  ),
  broken(
    valid,
    'a flag that is a text',
    withData((data) => ({ ...data, supportsDataActivation: 'perhaps' })),
  ),
  broken(
    valid,
    'resources of an unknown job',
    withData((data) => ({
      ...data,
      resourceRequirements: { jobSpecific: [{ jobType: 'dance', resourceRequirements: {} }] },
    })),
  ),
  broken(
    valid,
    'a tag without a key',
    withData((data) => ({ ...data, tags: ['language:typescript', 'reviews'] })),
  ),
  broken(
    valid,
    'a registry that does not say whether it is enabled',
    withData((data) => ({ ...data, registryOverrides: { oss: {} } })),
  ),
  broken(
    valid,
    'a major version without a breaking change',
    withData((data) => ({ ...data, dockerImageTag: '1.0.0' })),
  ),
  broken(
    valid,
    'a release candidate without a rollout',
    withData((data) => ({ ...data, dockerImageTag: '0.2.0-rc.1' })),
  ),
  broken(
    'Connector must have a language tag in metadata',
    'two languages',
    withData((data) => ({ ...data, tags: ['language:typescript', 'language:python', 'cdk:typescript'] })),
  ),
  broken(
    'Python connectors must have a CDK tag in metadata',
    'no kit',
    withData((data) => ({ ...data, tags: ['language:typescript'] })),
  ),
  broken(
    'Breaking change deadline should be a week in the future',
    'a deadline that has passed',
    breaking({ upgradeDeadline: '2026-01-01' }),
  ),
  broken('Breaking change must specify deadlineAction', 'an unknown action', breaking({ deadlineAction: 'explode' })),
  broken('Breaking change must specify deadlineAction', 'no action', breaking({})),
  broken(
    'Certified source connector must have a value filled out for maxSecondsBetweenMessages in metadata',
    'no value',
    withData(({ maxSecondsBetweenMessages: _, ...data }) => ({ ...data, supportLevel: 'certified' })),
  ),
  broken('Connectors must use Poetry for dependency management', 'no lock file', (connector) => ({
    ...connector,
    lock: undefined,
  })),
  broken('Connectors must use Poetry for dependency management', 'a lock file of other dependencies', (connector) => ({
    ...connector,
    lock: { dependencies: { 'left-pad': '1.0.0' } },
  })),
  broken(
    'Connectors must be licensed under MIT or Elv2',
    'another license',
    withData((data) => ({ ...data, license: 'GPL-3.0' })),
  ),
  broken(
    'Connectors must be licensed under MIT or Elv2',
    'no license',
    withData(({ license: _, ...data }) => data),
  ),
  broken('Connector license in metadata.yaml and pyproject.toml file must match', 'two licenses', (connector) => ({
    ...connector,
    manifest: { ...connector.manifest, license: 'ELv2' },
  })),
  broken(
    'Connector version must follow Semantic Versioning',
    'a version of two numbers',
    withData((data) => ({ ...data, dockerImageTag: '0.1' })),
  ),
  broken('Connector version in metadata.yaml and pyproject.toml file must match', 'two versions', (connector) => ({
    ...connector,
    manifest: { ...connector.manifest, version: '0.1.1' },
  })),
  broken('Connectors must have an icon', 'no icon', (connector) => ({ ...connector, icon: undefined })),
  broken('Connectors must have an icon', 'half an icon', (connector) => ({
    ...connector,
    icon: connector.icon?.slice(0, -20),
  })),
  broken('Connectors must use HTTPS only', 'a service over plain http', (connector) => ({
    ...connector,
    files: new Map([...connector.files, ['connector/api/extra.ts', "const url = 'http://feedback.example.com'\n"]]),
  })),
  broken('Connector Version Increment Check', 'the version of the main branch', (connector) => ({
    ...connector,
    released: connector.manifest.version,
  })),
  broken('Connector Version Increment Check', 'a version behind the main branch', (connector) => ({
    ...connector,
    released: '9999.0.0-rc.1',
  })),
]
