import { spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { findNodeProblem } from './node-floor.mjs'
import { createStatement, describeTarball } from './provenance.mjs'
import { findOtherVersions } from './versions.mjs'

const usage = `Makes a release of the last commit: the npm package, with --images both images, an SBOM for each, and
the provenance statement. It builds everything twice and stops if the results differ.
docs/release.md explains it.

npm run release -- [OPTION…]
  --out FOLDER          where the files go (release/VERSION)
  --images              also the images; needs buildah
  --base-digest DIGEST  another base image than the Dockerfile's, for a trial
  --publish             then publish the package, push the images and tag the commit; without it, nothing leaves
                        this machine
  --push-to PREFIX      where --publish pushes the images, such as docker://HOST/feedback`

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const targets = ['source', 'destination']

/** Ends the release with a message for the person making it. */
const refuse = (message) => {
  throw Object.assign(new Error(message), { refused: true })
}
const step = (name) => console.log(`ok      ${name}`)
const read = (path) => readFileSync(join(root, path), 'utf8')

/** The output of a command. If it fails, the release ends with the last lines of its output. */
const run = (command, args, { cwd = root, env = {}, input } = {}) => {
  const { status, stdout, stderr, error } = spawnSync(command, args, {
    cwd,
    env: { ...process.env, ...env },
    input,
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  })
  if (error !== undefined) refuse(`${command} cannot be run (${error.code}).`)
  if (status !== 0)
    refuse(`${command} ${args.join(' ')} failed:\n${`${stdout}${stderr}`.trim().split('\n').slice(-20).join('\n')}`)
  return { stdout, stderr }
}
const git = (...args) => run('git', args).stdout.trim()

const checkVersions = (version) => {
  const [[path, found] = []] = findOtherVersions(version)
  if (path !== undefined) refuse(`${path} has the version ${found}, package.json has ${version}.`)
  const heading = /^## (.*)$/m.exec(read('CHANGELOG.md'))?.[1] ?? ''
  const [, changed, date] = /^(\S+) \((\d{4}-\d{2}-\d{2})\)$/.exec(heading) ?? []
  if (changed !== version || Number.isNaN(Date.parse(date)))
    refuse(`CHANGELOG.md begins with "${heading}". A release of ${version} needs "${version} (YYYY-MM-DD)" there.`)
  if (git('tag', '--list', `v${version}`) !== '') refuse(`The tag v${version} exists: ${version} is released already.`)
}

/** The base image in the Dockerfile. Every stage that starts from an image must name it by digest. */
const findBase = (digest) => {
  const text = read('Dockerfile')
  const stages = [...text.matchAll(/^FROM +(\S+)(?: +AS +(\S+))?/gim)]
  const own = new Set(stages.map(([, , name]) => name))
  const loose = stages.filter(([, image]) => !own.has(image) && image !== `\${BASE_NAME}@\${BASE_DIGEST}`)
  if (loose.length > 0) refuse(`Dockerfile: "${loose[0][0]}" has no digest. Write FROM \${BASE_NAME}@\${BASE_DIGEST}.`)
  const base = {
    name: /^ARG BASE_NAME=(\S+)$/m.exec(text)?.[1] ?? '',
    digest: digest ?? /^ARG BASE_DIGEST=(\S+)$/m.exec(text)?.[1] ?? '',
  }
  if (!/^[a-z0-9/._-]+:[\w.-]+$/.test(base.name)) refuse('Dockerfile: ARG BASE_NAME is not a NAME:TAG.')
  if (!/^sha256:[0-9a-f]{64}$/.test(base.digest))
    refuse(
      `The base image is not pinned: ${base.digest || 'no ARG BASE_DIGEST'} ` +
        'is not a digest. docs/release.md says how to look it up.',
    )
  return base
}

/** Refuses a base image with an old Node.js. Runs the image to find out, since its tag may name any version. */
const checkBaseNode = ({ name, digest, local }) => {
  const pull = local ? '--pull-never' : '--pull-always'
  const container = run('buildah', ['from', '--quiet', pull, `${name}@${digest}`]).stdout.trim()
  try {
    // On a busy machine, the output of a command that ends immediately may be lost.
    const version = run('buildah', ['run', container, '--', 'sh', '-c', 'node --version && sleep 1']).stdout.trim()
    const problem = findNodeProblem(version)
    if (problem !== undefined) refuse(`The base image: ${problem} docs/release.md says how to renew it.`)
    step(`the base image holds Node ${version}`)
  } finally {
    run('buildah', ['rm', container])
  }
}

/** The two ways in which everything is built. Their differences must not affect the result. */
const ways = [
  { folder: 'one', umask: '022', env: { TZ: 'UTC', LC_ALL: 'C' } },
  { folder: 'another/folder', umask: '077', env: { TZ: 'Pacific/Kiritimati', LC_ALL: 'C.UTF-8' } },
]

/** A clone of the last commit with its package built. Returns the folder and the tarball. */
const buildPackage = (work, epoch, { folder, umask, env }) => {
  const cwd = join(work, folder)
  const shell = (command) =>
    run('sh', ['-ec', `umask ${umask}; ${command}`], { cwd, env: { ...env, SOURCE_DATE_EPOCH: epoch } })
  mkdirSync(cwd, { recursive: true })
  shell(`git clone --quiet '${root}' . && npm ci --no-audit`)
  // npm packs the files with their current modes, which depend on the umask.
  const modes = 'find . -path ./node_modules -prune -o -type f -exec chmod u=rwX,go=rX {} +'
  const name = shell(`${modes}; npm pack --silent --ignore-scripts`).stdout.trim().split('\n').at(-1)
  return { cwd, shell, tarball: join(cwd, name) }
}

const same = (what, [one, other]) => {
  if (one !== other) refuse(`${what} is not the same when it is built twice:\n${one}\n${other}`)
}

/**
 * Builds the images in both clones and compares their ids, the digests of their settings and of the bytes of their
 * layers. Each clone builds one image like scripts/image.sh alone does, and the other from the files of the first,
 * since they differ only in their settings.
 */
const buildImages = (clones, { out, base, version }) => {
  const imageOf = (target, tag = version) => `localhost/feedback/${target}-feedback:${tag}`
  const options = `--build-arg BASE_NAME=${base.name} --build-arg BASE_DIGEST=${base.digest}`
  const build = ({ shell }, target, image, more) => {
    const { stdout } = shell(`scripts/image.sh ${target} ${image} ${options} ${more}`)
    return stdout.trim().split('\n').at(-1)
  }
  const built = clones.map((clone, index) => {
    const tag = index === 0 ? version : `${version}-again`
    const [whole, other] = index === 0 ? targets : targets.toReversed()
    return {
      [whole]: build(clone, whole, imageOf(whole, tag), base.local ? '--pull-never' : '--pull-always'),
      // No registry has the image just built, and the base image is already on this machine.
      [other]: build(
        clone,
        other,
        imageOf(other, tag),
        `--pull-never --build-context build=container-image://${imageOf(whole, tag)}`,
      ),
    }
  })
  return targets.map((target) => {
    const name = `${target}-feedback`
    const ids = built.map((each) => each[target])
    same(`The image ${name}`, ids)
    const archive = join(out, `${name}-${version}.tar`)
    const digest = join(clones[0].cwd, '..', `${name}.digest`)
    rmSync(archive, { force: true })
    run('buildah', ['push', '--quiet', '--digestfile', digest, imageOf(target), `oci-archive:${archive}`])
    return { name: `feedback/${name}`, image: imageOf(target), digest: readFileSync(digest, 'utf8').trim() }
  })
}

/** The list of parts that an image holds. */
const readImageParts = ({ image }) => {
  const container = run('buildah', ['from', '--pull-never', image]).stdout.trim()
  try {
    return run('buildah', ['run', container, '--', 'cat', '/connector/sbom.json']).stdout
  } finally {
    run('buildah', ['rm', container])
  }
}

/** npm's warnings about the package. Those about this machine's settings and login say nothing about it. */
const packageWarnings = (stderr) =>
  stderr
    .split('\n')
    .filter(
      (line) =>
        /^npm warn/i.test(line) &&
        !/Unknown (user|env|cli|builtin|global) config|requires you to be logged in/.test(line),
    )

const release = ({ out: givenOut, images, 'base-digest': baseDigest, publish, 'push-to': pushTo }) => {
  const startedOn = new Date().toISOString()
  const { name, version, private: isPrivate } = JSON.parse(read('package.json'))
  if (publish && images && pushTo === undefined) refuse('--publish with --images needs --push-to.')
  if (publish && baseDigest !== undefined) refuse('--base-digest is for a trial: leave it out, or --publish.')
  const dirty = git('status', '--porcelain')
  if (dirty !== '') refuse(`The checkout has changes that are not committed:\n${dirty}`)
  if (isPrivate) refuse('package.json says private: npm would refuse to publish it.')
  step('the checkout is clean')
  checkVersions(version)
  step(`everything says ${version}`)
  const base = { ...findBase(baseDigest), local: baseDigest !== undefined }
  step(`the base image is ${base.name}@${base.digest}`)
  if (images) checkBaseNode(base)

  const commit = git('rev-parse', 'HEAD')
  const epoch = git('log', '-1', '--format=%ct')
  const out = resolve(givenOut ?? join(root, 'release', version))
  mkdirSync(out, { recursive: true })
  const work = mkdtempSync(join(tmpdir(), 'release-'))
  try {
    const clones = ways.map((way) => buildPackage(work, epoch, way))
    const packed = clones.map(({ tarball }) => describeTarball(tarball))
    same(
      'The package',
      packed.map(({ digest }) => digest.sha512),
    )
    const tarball = join(out, packed[0].name)
    writeFileSync(tarball, readFileSync(clones[0].tarball))
    step(`the package is the same when it is built twice: ${packed[0].digest.sha256}`)

    const list = join(out, `${name}-${version}.sbom.json`)
    const parts = 'npm sbom --silent --package-lock-only --sbom-format=cyclonedx | node scripts/sbom.mjs'
    const lists = clones.map(({ shell }) => shell(parts).stdout)
    same('The list of the parts of the package', lists)
    writeFileSync(list, lists[0])
    step('the package has a list of its parts')

    const dryRun = packageWarnings(run('npm', ['publish', tarball, '--dry-run']).stderr)
    if (dryRun.length > 0) refuse(`npm publish --dry-run warns:\n${dryRun.join('\n')}`)
    step('npm publish --dry-run warns of nothing')

    const built = images ? buildImages(clones, { out, base, version }) : []
    for (const { name: image, digest } of built) step(`${image} is the same when it is built twice: ${digest}`)
    const imageLists = built.map((image) => {
      const path = join(out, `${image.name.split('/')[1]}-${version}.sbom.json`)
      writeFileSync(path, readImageParts(image))
      return path
    })
    if (images) step('the images have lists of their parts')

    const statement = createStatement({
      subject: [
        packed[0],
        ...built.map(({ name: image, digest }) => ({ name: image, digest: { sha256: digest.replace('sha256:', '') } })),
      ],
      version,
      commit,
      lockFile: join(root, 'package-lock.json'),
      base: images ? base : undefined,
      lists: [list, ...imageLists],
      tools: {
        node: process.version,
        npm: run('npm', ['--version']).stdout.trim(),
        ...(images ? { buildah: run('buildah', ['--version']).stdout.trim() } : {}),
      },
      startedOn,
      finishedOn: new Date().toISOString(),
      id: randomUUID(),
    })
    writeFileSync(join(out, 'provenance.json'), `${JSON.stringify(statement, null, 2)}\n`)
    step(`the statement of provenance names commit ${commit}`)

    if (!publish) return console.log(`Nothing has left this machine. ${out} has the files; --publish releases them.`)
    for (const { image, name: target, digest } of built) {
      const file = join(work, 'pushed')
      const to = `${pushTo}/${target.split('/')[1]}:${version}`
      run('buildah', ['push', '--quiet', '--digestfile', file, image, to])
      same(`The image ${target}, pushed`, [digest, readFileSync(file, 'utf8').trim()])
      step(`${to} is there`)
    }
    run('npm', ['publish', tarball])
    step(`${name} ${version} is published`)
    git('tag', '--annotate', `v${version}`, '--message', `Release ${version}`, commit)
    console.log(`Tagged v${version}. Push the tag, and put the files of ${out} beside the release.`)
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

try {
  const { values } = parseArgs({
    options: {
      out: { type: 'string' },
      images: { type: 'boolean' },
      'base-digest': { type: 'string' },
      publish: { type: 'boolean' },
      'push-to': { type: 'string' },
      help: { type: 'boolean' },
    },
  })
  if (values.help) console.log(usage)
  else release(values)
} catch (error) {
  console.error(
    error.code?.startsWith('ERR_PARSE_ARGS') ? `${error.message}\n\n${usage}` : error.refused ? error.message : error,
  )
  process.exitCode = error.code?.startsWith('ERR_PARSE_ARGS') ? 2 : 1
}
