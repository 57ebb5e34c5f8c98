import { parse } from 'yaml'
import type { JsonSchema } from '../../connector/cdk/schema'
import { metadataErrors } from '../support/airbyte-metadata'
import { schemaProperties } from '../support/schema-walk'

type BreakingChange = { readonly upgradeDeadline?: string; readonly deadlineAction?: string }

type Metadata = {
  readonly name: string
  readonly connectorType: string
  readonly dockerImageTag: string
  readonly license?: string
  readonly supportLevel?: string
  readonly documentationUrl: string
  readonly maxSecondsBetweenMessages?: number
  readonly tags?: ReadonlyArray<string>
  readonly releases?: { readonly breakingChanges?: Readonly<Record<string, BreakingChange>> }
}

type Manifest = {
  readonly license?: string
  readonly version?: string
  readonly dependencies?: Readonly<Record<string, string>>
}

/** All that the rules look at; a text is undefined where the file is missing. */
export type AirbyteConnector = {
  readonly kind: 'source' | 'destination'
  /** metadata.yaml */
  readonly metadata: string
  /** The documentation page, in Markdown, and the guide for those who upgrade over a breaking change. */
  readonly page: string | undefined
  readonly guide: string | undefined
  readonly icon: string | undefined
  readonly spec: JsonSchema
  readonly manifest: Manifest
  readonly lock: Manifest | undefined
  /** The text of each file of the connector, by its path. */
  readonly files: ReadonlyMap<string, string>
  /** The version on the platform's main branch; undefined where it has none. */
  readonly released: string | undefined
  readonly today: Date
}

export type AirbyteRule = {
  /** The rule's own name. */
  readonly name: string
  /** What is wrong; empty where the rule passes. */
  readonly find: (connector: AirbyteConnector) => ReadonlyArray<string>
  /** What the port does otherwise than the rule as written, and why. */
  readonly otherwise?: string
  /** Why the rule as written cannot pass for a connector in TypeScript. */
  readonly failsAsWritten?: string
}

const data = ({ metadata }: AirbyteConnector): Metadata => (parse(metadata) as { readonly data: Metadata }).data

const unless = (passes: boolean, problem: string): ReadonlyArray<string> => (passes ? [] : [problem])

const semver = /^(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?$/

type Section = { readonly heading: string; readonly text: string }

/** The sections of a page by their headings, code blocks passed over. */
const sections = (page: string): ReadonlyArray<Section> => {
  const found: Array<{ heading: string; lines: string[] }> = []
  let fenced = false
  for (const line of page.split('\n')) {
    if (line.trimStart().startsWith('```')) fenced = !fenced
    const [, heading] = fenced ? [] : (/^#{1,6} (.+)$/.exec(line) ?? [])
    if (heading === undefined) found.at(-1)?.lines.push(line)
    else found.push({ heading: heading.trim(), lines: [] })
  }
  return found.map(({ heading, lines }) => ({ heading, text: lines.join('\n').trim() }))
}

const specific = Symbol('a heading of the connector itself')

/** The headings in the platform's order; those in brackets may be left out. */
const headings = (name: string): ReadonlyArray<string | readonly [string] | typeof specific> => [
  name,
  'Prerequisites',
  'Setup guide',
  `Set up ${name}`,
  ['For Airbyte Cloud:'],
  ['For Airbyte Open Source:'],
  specific,
  [`Set up the ${name} connector in Airbyte`],
  ['For Airbyte Cloud:'],
  ['For Airbyte Open Source:'],
  specific,
  'Supported sync modes',
  'Supported Streams',
  specific,
  'IP allow list',
  ['Performance considerations'],
  ['Data type map'],
  ['Limitations & Troubleshooting'],
  specific,
  ['Tutorials'],
  'Changelog',
]

const headingErrors = (actual: ReadonlyArray<string>, name: string): ReadonlyArray<string> => {
  const expected = headings(name)
  const known = new Set(expected.flatMap((one) => (one === specific ? [] : one)))
  let index = 0
  for (const one of expected) {
    if (one === specific) {
      while (index < actual.length && !known.has(actual[index] ?? '')) index += 1
    } else if (actual[index] === (typeof one === 'string' ? one : one[0])) index += 1
    else if (typeof one === 'string') return [`where ${one} is expected, the page has ${actual[index] ?? 'its end'}`]
  }
  return []
}

/** How a section must begin according to the platform's template; links are written as {docs_link}. */
const beginnings = (name: string, kind: 'source' | 'destination'): Readonly<Record<string, string>> => {
  const Kinds = kind === 'source' ? 'Sources' : 'Destinations'
  return {
    [name]:
      `<HideInUI>\n\nThis page contains the setup guide and reference information ` +
      `for the [${name}]({docs_link}) ${kind} connector.\n\n</HideInUI>`,
    'For Airbyte Cloud:':
      `1. [Log into your Airbyte Cloud]({docs_link}) account.\n2. Click ${Kinds} and then ` +
      `click + New ${kind}.\n3. On the Set up the ${kind} page, select ${name} from the ` +
      `${Kinds.slice(0, -1)} type dropdown.\n4. Enter a name for the ${name} connector.`,
    'For Airbyte Open Source:': '1. Navigate to the Airbyte Open Source dashboard.',
    'Supported sync modes': `The ${name} ${kind} connector supports the following [sync modes]({docs_link}):`,
    Tutorials: `Now that you have set up the ${name} ${kind} connector, check out the following ${name} tutorials:`,
    'IP allow list':
      'If you use Airbyte Cloud and your organization restricts access to specific ' +
      'IPs, add the [Airbyte Cloud IP addresses]({docs_link}) to your allow list.',
    Changelog: '<details>\n  <summary>Expand to review</summary>\n',
  }
}

const beginsAsTemplate = (connector: AirbyteConnector, heading: string, required = true): ReadonlyArray<string> => {
  const { name } = data(connector)
  if (connector.page === undefined) return ['there is no page']
  const found = sections(connector.page).filter((section) => section.heading === heading)
  if (found.length === 0) return unless(!required, `the page has no section ${heading}`)
  const beginning = beginnings(name, connector.kind)[heading] ?? ''
  return unless(
    found.some(({ text }) => text.replace(/\(https?:\/\/[^\s)]+\)/g, '({docs_link})').startsWith(beginning)),
    `no section ${heading} begins as the template`,
  )
}

const sectionRule = (heading: string, required = true): AirbyteRule => ({
  name: `'${heading}' section of the documentation follows our guidelines`,
  find: (connector) => beginsAsTemplate(connector, heading, required),
})

const documentationRules: ReadonlyArray<AirbyteRule> = [
  {
    name: 'Breaking changes must be accompanied by a migration guide',
    find: (connector) => {
      const { name, releases } = data(connector)
      const breaking = Object.keys(releases?.breakingChanges ?? {})
      if (breaking.length === 0) return []
      if (connector.guide === undefined) return ['there is no guide']
      const lines = connector.guide.split('\n').map((line) => line.trim())
      const versions = lines.flatMap((line) => /^## Upgrading to (.+)$/.exec(line)?.[1] ?? [])
      return [
        ...unless(lines.includes(`# ${name} Migration Guide`), 'the guide has no title'),
        ...unless(versions.join() === [...versions].sort().reverse().join(), 'its versions do not descend'),
        ...breaking.flatMap((version) => unless(versions.includes(version), `${version} is missing in it`)),
      ]
    },
  },
  {
    name: 'Connectors must have user facing documentation',
    find: ({ page }) => unless(page !== undefined && page !== '', 'there is no page'),
  },
  {
    name: 'Links used in connector documentation are valid',
    otherwise:
      'asks no server, since a test asks none but its own: a link leads over ' +
      'https to the documentation of the platform or stands for your service',
    find: ({ page = '' }) =>
      [...page.matchAll(/(?<!example: )\bhttps?:\/\/[^\s`)]+/g)].flatMap(([link]) =>
        unless(
          /^https:\/\/((docs|cloud)\.airbyte\.com|feedback\.example\.com)(\/|$)/.test(link),
          `${link} is not known`,
        ),
      ),
  },
  {
    name: 'Connectors documentation headers structure, naming and order follow our guidelines',
    find: (connector) =>
      headingErrors(
        sections(connector.page ?? '').map(({ heading }) => heading),
        data(connector).name,
      ),
  },
  {
    name: 'Prerequisites section of the documentation describes all required fields from specification',
    find: ({ page = '', spec }) => {
      const text = sections(page)
        .filter(({ heading }) => heading === 'Prerequisites')
        .map((section) => section.text.toLowerCase())
      if (text.length !== 1) return ['the page needs one section Prerequisites']
      const [found = ''] = text
      const required = (spec.required ?? []) as ReadonlyArray<string>
      const titles = required
        .filter((key) => key !== 'credentials')
        .map((key) => String(schemaProperties(spec)[key]?.title))
      return [
        ...titles.flatMap((title) => unless(found.includes(title.toLowerCase()), `${title} is missing`)),
        ...unless(/account|auth|credentials|access|client/.test(found), 'the credentials are missing'),
      ]
    },
  },
  {
    name: 'Main Source Section of the documentation follows our guidelines',
    find: (connector) => beginsAsTemplate(connector, data(connector).name),
  },
  sectionRule('For Airbyte Cloud:'),
  sectionRule('For Airbyte Open Source:'),
  sectionRule('Supported sync modes'),
  sectionRule('Tutorials', false),
  sectionRule('IP allow list'),
  sectionRule('Changelog'),
  {
    name: 'Connectors must have a changelog entry for each version',
    find: (connector) => {
      const [, ...after] = (connector.page ?? '').split(/# changelog/i)
      return unless(after.join().includes(data(connector).dockerImageTag), 'the changelog lacks this version')
    },
  },
]

const currentBreakingChange = (connector: AirbyteConnector): BreakingChange | undefined => {
  const { releases, dockerImageTag } = data(connector)
  return releases?.breakingChanges?.[dockerImageTag]
}

/** What the platform checks of metadata before it takes it up, beyond the schema. */
const uploadErrors = (connector: AirbyteConnector): ReadonlyArray<string> => {
  const { tags = [], dockerImageTag, releases } = data(connector)
  if (!semver.test(dockerImageTag)) return [`${dockerImageTag} is no version`]
  const [, , minor, patch, prerelease] = semver.exec(dockerImageTag) ?? []
  const major = minor === '0' && patch === '0' && prerelease === undefined
  return [
    ...tags.flatMap((tag) => unless(tag.includes(':'), `the tag ${tag} is no key and value`)),
    ...unless(
      tags.some((tag) => tag.startsWith('language:')),
      'no tag names the language',
    ),
    ...unless(
      !major || releases?.breakingChanges?.[dockerImageTag] !== undefined,
      `the major version ${dockerImageTag} has no breaking change`,
    ),
    ...unless(connector.page !== undefined, 'the documentation page is missing'),
    ...unless(prerelease?.includes('rc') !== true, 'a release candidate needs a progressive rollout'),
  ]
}

const oneTag = (connector: AirbyteConnector, key: string): ReadonlyArray<string> => {
  const tags = (data(connector).tags ?? []).filter((tag) => tag.startsWith(`${key}:`))
  return unless(tags.join() === `${key}:typescript`, `the tags of ${key} are ${tags.join() || 'none'}`)
}

const day = 86_400_000

const metadataRules: ReadonlyArray<AirbyteRule> = [
  {
    name: 'Connectors must have valid metadata.yaml file',
    find: (connector) => {
      const errors = metadataErrors(parse(connector.metadata))
      return errors.length > 0 ? errors : uploadErrors(connector)
    },
  },
  {
    name: 'Connector must have a language tag in metadata',
    failsAsWritten: 'it recognizes only Python, Java and manifests',
    find: (connector) => oneTag(connector, 'language'),
  },
  {
    name: 'Python connectors must have a CDK tag in metadata',
    otherwise: 'the tag is `cdk:typescript`, that of our own kit; as written the rule passes over all but Python',
    find: (connector) => oneTag(connector, 'cdk'),
  },
  {
    name: 'Breaking change deadline should be a week in the future',
    find: (connector) => {
      const change = currentBreakingChange(connector)
      if (change === undefined) return []
      const deadline = Date.parse(change.upgradeDeadline ?? '')
      return unless(deadline > connector.today.getTime() + 7 * day, 'the deadline is missing or too near')
    },
  },
  {
    name: 'Breaking change must specify deadlineAction',
    find: (connector) => {
      const change = currentBreakingChange(connector)
      return unless(
        change === undefined || ['auto_upgrade', 'disable'].includes(change.deadlineAction ?? ''),
        'the action at the deadline is missing or unknown',
      )
    },
  },
  {
    name: 'Certified source connector must have a value filled out for maxSecondsBetweenMessages in metadata',
    otherwise: 'asks it of every connector, not only of certified sources',
    find: (connector) => unless((data(connector).maxSecondsBetweenMessages ?? 0) > 0, 'the value is missing'),
  },
]

const packagingRules: ReadonlyArray<AirbyteRule> = [
  {
    name: 'Connectors must use Poetry for dependency management',
    otherwise: 'npm in place of Poetry: package-lock.json locks what package.json asks for',
    find: ({ manifest, lock }) =>
      unless(
        lock !== undefined && JSON.stringify(lock.dependencies) === JSON.stringify(manifest.dependencies),
        'package-lock.json does not lock the dependencies of package.json',
      ),
  },
  {
    name: 'Connectors must be licensed under MIT or Elv2',
    find: (connector) =>
      unless(
        ['MIT', 'ELV2', 'AIRBYTE ENTERPRISE'].includes(data(connector).license?.toUpperCase() ?? ''),
        'the license is missing or another',
      ),
  },
  {
    name: 'Connector license in metadata.yaml and pyproject.toml file must match',
    otherwise: 'package.json in place of pyproject.toml',
    find: (connector) => unless(data(connector).license === connector.manifest.license, 'the licenses differ'),
  },
  {
    name: 'Connector version must follow Semantic Versioning',
    find: (connector) =>
      unless(semver.test(data(connector).dockerImageTag), 'the version is none of Semantic Versioning'),
  },
  {
    name: 'Connector version in metadata.yaml and pyproject.toml file must match',
    otherwise: 'package.json in place of pyproject.toml',
    find: (connector) => unless(data(connector).dockerImageTag === connector.manifest.version, 'the versions differ'),
  },
]

/** Plain http that stays, and why. The text is in the file exactly as here. */
export const plainHttp: ReadonlyArray<{ readonly path: string; readonly text: string; readonly why: string }> = [
  {
    path: 'connector/sandbox/server/server.ts',
    text: "http://${family === 'IPv6'",
    why: 'the address at which the sandbox listens, on loopback unless asked otherwise',
  },
  {
    path: 'connector/sandbox/server/server.ts',
    text: 'http://sandbox$',
    why: 'a base for parsing the path of a request; nothing connects to it',
  },
  {
    path: 'connector/sandbox/server/pages.ts',
    text: 'http://${host',
    why: 'parses the host of a request to the sandbox',
  },
  {
    path: 'connector/sandbox/server/pages.ts',
    text: 'http://${headers.host',
    why: 'the origin that a form of the sandbox must come from',
  },
  {
    path: 'scripts/pictures.mjs',
    text: 'http://www.w3.org/2000/svg',
    why: 'the name of the format SVG; nothing connects to it',
  },
  ...['`http://${value', 'http://proxy.example.com:3128', 'begins with http://', 'http://USER:PASSWORD@HOST'].map(
    (text) => ({
      path: 'connector/api/http/proxy.ts',
      text,
      why: 'a proxy is spoken to in plain http, and the service through it in TLS',
    }),
  ),
  ...['http://proxy.example.com:3128', '`http://host:port`', 'http://USER:PASSWORD@host'].map((text) => ({
    path: 'docs/running.md',
    text,
    why: 'how the address of a proxy is given',
  })),
]

const loopback = /http:\/\/(localhost|127\.\d+\.\d+\.\d+|\[::1\])(?![\w.-])/g

/** Lines of a file with plain http beyond loopback, the schema's name and what `plainHttp` lists. */
const plainHttpLines = (path: string, text: string): ReadonlyArray<string> =>
  text.split('\n').flatMap((line, index) => {
    const rest = plainHttp
      .filter((one) => one.path === path)
      .reduce((left, one) => left.replaceAll(one.text, ''), line.replaceAll('http://json-schema.org', ''))
    return unless(!rest.replace(loopback, '').toLowerCase().includes('http://'), `${path}:${index + 1}`)
  })

const compareVersions = (left: string, right: string): number => {
  const [a, b] = [left, right].map((text) => (semver.exec(text) ?? []).slice(1, 4).map(Number))
  const index = [0, 1, 2].find((place) => a?.[place] !== b?.[place])
  if (index !== undefined) return (a?.[index] ?? 0) - (b?.[index] ?? 0)
  const [first = '', second = ''] = [left, right].map((text) => semver.exec(text)?.[4])
  // A release comes after its candidates.
  if (first === '' || second === '') return Number(first === '') - Number(second === '')
  return first.localeCompare(second, 'en', { numeric: true })
}

const otherRules: ReadonlyArray<AirbyteRule> = [
  {
    name: 'Connectors must have an icon',
    otherwise: 'the icon is also square, which the rule as written only intends',
    find: ({ icon = '' }) => {
      const [, width, height] =
        /^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg"[^>]* viewBox="0 0 (\d+) (\d+)"/.exec(icon) ?? []
      return unless(
        width !== undefined && width === height && icon.trimEnd().endsWith('</svg>'),
        'the icon is no square SVG',
      )
    },
  },
  {
    name: 'Connectors must use HTTPS only',
    otherwise: '`plainHttp` lists the exceptions',
    failsAsWritten: 'the sandbox and examples write localhost as 127.0.0.1',
    find: ({ files }) =>
      [...files].flatMap(([path, text]) => (path.endsWith('.svg') ? [] : plainHttpLines(path, text))),
  },
  {
    name: 'Connector Version Increment Check',
    otherwise:
      'held against the version on the main branch of the platform, ' +
      'where this connector has none yet: any version passes until then',
    find: (connector) =>
      unless(
        compareVersions(data(connector).dockerImageTag, connector.released ?? '0.0.0') > 0,
        `the version is not above ${connector.released}`,
      ),
  },
]

export const airbyteRules: ReadonlyArray<AirbyteRule> = [
  ...documentationRules,
  ...metadataRules,
  ...packagingRules,
  ...otherRules,
]

/** Rules that have no meaning for a connector in TypeScript, and why. */
export const foreignRules: Readonly<Record<string, string>> = {
  'Python connectors must have PyPi publishing declared.': 'it is not a PyPI package',
  'Manifest-only connectors must use `source-declarative-manifest` as their base image': 'it has no manifest',
  'Python connectors must not use a Dockerfile and must declare their base image in metadata.yaml file':
    'the base images are for Python and Java; ours is the official image of Node',
}
