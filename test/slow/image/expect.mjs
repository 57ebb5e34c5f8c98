import { readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'

// Reads what a verb printed on stdin and exits 1 with a reason unless it is what the protocol wants.
// node expect.mjs spec | check SUCCEEDED | discover STREAM,… | read STREAM=COUNT,… | objects OBJECT,… |
// written STREAM=ACCEPTED+REJECTED,… | held VISIT,… | letters REASON | sbom PACKAGE,… | debian FILE | image NAME
// VERSION BASE-DIGEST | provenance COMMIT BASE-DIGEST

const fail = (reason) => {
  process.stderr.write(`${reason}\n`)
  process.exit(1)
}
const same = (what, got, wanted) => {
  if (JSON.stringify(got) !== JSON.stringify(wanted))
    fail(`${what}: ${JSON.stringify(got)}, not ${JSON.stringify(wanted)}`)
}
const messages = (printed) =>
  printed
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
    .filter(({ type }) => type !== 'LOG')

const expectations = {
  spec: (printed) => {
    const [message, ...more] = messages(printed)
    same('message types', [message.type, ...more], ['SPEC'])
    same('required keys', message.spec.connectionSpecification.required.includes('base_url'), true)
  },
  check: (printed, wanted) => {
    const [message, ...more] = messages(printed)
    same('status', [message.connectionStatus?.status, ...more], [wanted])
  },
  discover: (printed, wanted) => {
    const [message, ...more] = messages(printed)
    const names = message.catalog.streams.map(({ name }) => name)
    same('missing streams', [...wanted.split(',').filter((name) => !names.includes(name)), ...more], [])
  },
  read: (printed, wanted) => {
    const said = messages(printed)
    for (const [stream, count] of wanted.split(',').map((pair) => pair.split('='))) {
      const ids = said
        .filter((m) => m.type === 'RECORD' && m.record.stream === stream)
        .map((m) => String(m.record.data.id))
      same(`records of ${stream}`, [ids.length, new Set(ids).size], [Number(count), Number(count)])
      const states = said.filter((m) => m.state?.stream?.stream_descriptor.name === stream)
      const counted = states.reduce((sum, { state }) => sum + state.sourceStats.recordCount, 0)
      same(`records counted by the states of ${stream}`, counted, Number(count))
      const statuses = said
        .filter((m) => m.trace?.stream_status?.stream_descriptor.name === stream)
        .map((m) => m.trace.stream_status.status)
      same(`last status of ${stream}`, statuses.at(-1), 'COMPLETE')
    }
  },
  objects: (printed, wanted) => {
    const [message, ...more] = messages(printed)
    const names = message.destination_catalog.operations.map(({ object_name }) => object_name)
    same('missing objects', [...wanted.split(',').filter((name) => !names.includes(name)), ...more], [])
  },
  written: (printed, wanted) => {
    const stats = messages(printed).map(({ state }) => [state.stream.stream_descriptor.name, state.destinationStats])
    const counts = stats.map(
      ([name, { recordCount, rejectedRecordCount }]) => `${name}=${recordCount}+${rejectedRecordCount}`,
    )
    same('states and their counts', counts, wanted.split(','))
  },
  held: (printed, wanted) => {
    same(
      'visits at the service',
      JSON.parse(printed).visits.map(({ id }) => id),
      wanted.split(','),
    )
  },
  letters: (printed, wanted) => {
    const reasons = printed
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line).reason)
    same('reasons', reasons, [wanted])
  },
  sbom: (printed, wanted) => {
    const names = JSON.parse(printed).components.map(({ group, name }) => (group ? `${group}/${name}` : name))
    same(
      'missing components',
      wanted.split(',').filter((name) => !names.includes(name)),
      [],
    )
    same(
      'components for development',
      names.filter((name) => /vitest|biome|typescript/.test(name)),
      [],
    )
  },
  debian: (printed, file) => {
    const packages = JSON.parse(printed).components.filter(({ purl = '' }) => purl.startsWith('pkg:deb/'))
    const listed = packages.map(({ name, version }) => `${name}@${version}`)
    same('Debian packages', listed.sort(), readFileSync(file, 'utf8').trim().split('\n').sort())
    const licenses = packages.find(({ name }) => name === 'bash')?.licenses?.map(({ license }) => license.name) ?? []
    same('whether bash is under GPL-3+', licenses.includes('GPL-3+'), true)
    // Some name none, such as libcrypt1, and only have the text.
    const without = packages.filter((each) => each.licenses === undefined)
    if (without.length * 20 > packages.length) fail(`no license of ${without.map(({ name }) => name).join(', ')}`)
  },
  provenance: (printed, commit, digest) => {
    const { subject, predicate } = JSON.parse(printed)
    same(
      'subjects',
      subject.map(({ name }) => name.replace(/-[\d.]+\.tgz$/, '')),
      ['feedback-connector', 'feedback/source-feedback', 'feedback/destination-feedback'],
    )
    same(
      'digests',
      subject.filter((one) => !/^[0-9a-f]{64}$/.test(one.digest.sha256)),
      [],
    )
    const [source, , base] = predicate.buildDefinition.resolvedDependencies
    same('commit', source.digest.gitCommit, commit)
    same('base image', `sha256:${base.digest.sha256}`, digest)
    same('lists of parts', predicate.runDetails.byproducts.length, 3)
  },
  image: (printed, name, version, digest) => {
    const { OCIv1, Manifest } = JSON.parse(printed)
    const { config } = OCIv1
    const env = Object.fromEntries(config.Env.map((pair) => pair.split(/=(.*)/s).slice(0, 2)))
    same('label of the version', config.Labels['io.airbyte.version'], version)
    same('label of the name', config.Labels['io.airbyte.name'], `feedback/${name}`)
    same('label of the OCI version', config.Labels['org.opencontainers.image.version'], version)
    same('label of the base image', config.Labels['org.opencontainers.image.base.digest'], digest)
    same('label of the OCI title', config.Labels['org.opencontainers.image.title'], name)
    same('entrypoint', config.Entrypoint, [env.AIRBYTE_ENTRYPOINT])
    same('time zone', env.TZ, 'UTC')
    same('a user of its own', /^[1-9]/.test(config.User), true)
    const ours = JSON.parse(Manifest).layers.slice(1)
    const megabytes = ours.reduce((sum, { size }) => sum + size, 0) / 1e6
    if (megabytes > 100) fail(`our layers hold ${megabytes.toFixed(1)} MB, more than 100`)
    process.stdout.write(`our layers hold ${megabytes.toFixed(1)} MB\n`)
  },
}

const [, , name, ...wanted] = process.argv
expectations[name](await text(process.stdin), ...wanted)
