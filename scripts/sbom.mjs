import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const usage = `Turns what npm sbom --sbom-format=cyclonedx prints into a list of parts that is the same for every build
of one commit.

npm sbom --sbom-format=cyclonedx | node scripts/sbom.mjs [--image] > sbom.json
  --image   adds what else the image that this runs in holds: the Debian packages, Node.js, and the packages that come
            with it

SOURCE_DATE_EPOCH is the time of the list, in seconds since 1970; the list has none where it is not set.`

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const { values } = parseArgs({ options: { image: { type: 'boolean' } } })
const epoch = process.env.SOURCE_DATE_EPOCH ?? ''
if (!/^\d*$/.test(epoch)) {
  console.error(usage)
  process.exit(2)
}
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

/**
 * The list as npm made it, without dependencies only needed for development. npm's --omit=dev would also leave out
 * packages that both production and a tool need.
 */
const withoutDevelopment = (list) => {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'))
  const wanted = new Set([list.metadata.component['bom-ref']])
  for (const [path, { name = path.split('node_modules/').at(-1), version, dev }] of Object.entries(packages))
    if (!dev) wanted.add(`${name}@${version}`)
  const isWanted = (reference) => wanted.has(reference)
  return {
    ...list,
    components: list.components.filter((part) => isWanted(part['bom-ref'])),
    dependencies: list.dependencies
      .filter(({ ref }) => isWanted(ref))
      .map((part) => ({ ...part, dependsOn: part.dependsOn.filter(isWanted) })),
  }
}
const bom = withoutDevelopment(JSON.parse(await text(process.stdin)))

/** One member of /etc/os-release, such as VERSION_ID. */
const osRelease = (name) =>
  new RegExp(`^${name}="?([^"\n]*)"?$`, 'm').exec(readFileSync('/etc/os-release', 'utf8'))?.[1] ?? ''

/** Licenses by the names that a package uses, which may differ from those of SPDX. */
const licensesOf = (names) => {
  const licenses = [...new Set(names)].sort().map((name) => ({ license: { name } }))
  return licenses.length === 0 ? {} : { licenses }
}

/**
 * The licenses that a Debian package names in its copyright file: in separate fields, or in a text that refers to those
 * of the system.
 */
const debianLicenses = (name) => {
  const path = `/usr/share/doc/${name}/copyright`
  const copyright = existsSync(path) ? readFileSync(path, 'utf8') : ''
  const pattern = /^Format(-Specification)?:/im.test(copyright)
    ? /^License:[ \t]*(\S[^\n]*)/gim
    : /\/usr\/share\/common-licenses\/([\w.+-]*[\w+])/g
  return licensesOf([...copyright.matchAll(pattern)].map(([, license]) => license.trim()))
}

/** The packages installed by dpkg. Scanners look up vulnerabilities by source package. */
const debianPackages = () => {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: these are dpkg-query's own
  const format = '${Package}\t${Version}\t${Architecture}\t${source:Package}\t${source:Version}\n'
  const distribution = `${osRelease('ID')}-${osRelease('VERSION_ID')}`
  return execFileSync('dpkg-query', ['--show', `--showformat=${format}`], { encoding: 'utf8' })
    .trim()
    .split('\n')
    .map((line) => {
      const [name, version, architecture, source, sourceVersion] = line.split('\t')
      const upstream = source === name ? '' : `&upstream=${encodeURIComponent(`${source}@${sourceVersion}`)}`
      const purl = `pkg:deb/${osRelease('ID')}/${encodeURIComponent(name)}@${encodeURIComponent(version)}`
      return {
        'bom-ref': `deb:${name}:${architecture}@${version}`,
        type: 'library',
        name,
        version,
        purl: `${purl}?arch=${architecture}&distro=${distribution}${upstream}`,
        ...debianLicenses(name),
      }
    })
}

/** The folders with a package below `folder`, including those inside packages. */
const packageFolders = (folder) =>
  (existsSync(folder) ? readdirSync(folder, { withFileTypes: true }) : [])
    .filter((entry) => entry.isDirectory())
    .flatMap(({ name }) =>
      name.startsWith('@')
        ? packageFolders(join(folder, name))
        : [join(folder, name), ...packageFolders(join(folder, name, 'node_modules'))],
    )

/** npm and its dependencies, and other commands that come with the Node.js image. */
const commandPackages = () => {
  const other = existsSync('/opt') ? readdirSync('/opt').map((name) => join('/opt', name)) : []
  const found = [...packageFolders('/usr/local/lib/node_modules'), ...other]
    .map((folder) => join(folder, 'package.json'))
    .filter(existsSync)
    .map((path) => JSON.parse(readFileSync(path, 'utf8')))
    .filter(({ name, version }) => name !== undefined && version !== undefined)
    .map(({ name, version, license }) => ({
      'bom-ref': `command:${name}@${version}`,
      type: 'library',
      name,
      version,
      purl: `pkg:npm/${name.replace('@', '%40')}@${version}`,
      ...licensesOf(typeof license === 'string' ? [license] : []),
    }))
  return [...new Map(found.map((part) => [part['bom-ref'], part])).values()]
}

const node = process.versions.node
const imageParts = () => [
  { 'bom-ref': 'os', type: 'operating-system', name: osRelease('ID'), version: osRelease('VERSION_ID') },
  {
    'bom-ref': 'node',
    type: 'platform',
    name: 'node',
    version: node,
    purl: `pkg:generic/node@${node}`,
    cpe: `cpe:2.3:a:nodejs:node.js:${node}:*:*:*:*:*:*:*`,
  },
  ...commandPackages(),
  ...debianPackages(),
]

// npm names the package after its folder.
const product = { ...bom.metadata.component, name: manifest.name }
const container = { 'bom-ref': 'image', type: 'container', name: `${manifest.name}-image`, version: manifest.version }
const added = values.image ? imageParts() : []
const byReference = (a, b) => (a['bom-ref'] < b['bom-ref'] ? -1 : 1)
const list = {
  ...bom,
  metadata: {
    ...bom.metadata,
    timestamp: epoch === '' ? undefined : new Date(Number(epoch) * 1000).toISOString(),
    component: values.image ? container : product,
  },
  components: [...(values.image ? [product] : []), ...bom.components, ...added].sort(byReference),
  dependencies: values.image
    ? [{ ref: 'image', dependsOn: [product['bom-ref'], ...added.map((part) => part['bom-ref'])] }, ...bom.dependencies]
    : bom.dependencies,
}
// A name derived from the content, as a UUID of version 8, instead of a random one.
const hash = createHash('sha256')
  .update(JSON.stringify({ ...list, serialNumber: undefined }))
  .digest('hex')
const parts = [
  hash.slice(0, 8),
  hash.slice(8, 12),
  `8${hash.slice(13, 16)}`,
  `8${hash.slice(17, 20)}`,
  hash.slice(20, 32),
]
console.log(JSON.stringify({ ...list, serialNumber: `urn:uuid:${parts.join('-')}` }, null, 2))
