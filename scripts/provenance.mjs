import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { basename } from 'node:path'

/** Identifies, as docs/release.md says, what a build is and who makes it. These names are unique. */
const buildType = 'urn:uuid:a38181ff-a70a-4c72-9e0b-7430e551cdbd'
const localBuilder = 'urn:uuid:2c26157a-0315-418b-9a23-219eaea76a50'

const digestOf = (path, algorithm) => createHash(algorithm).update(readFileSync(path)).digest('hex')

/** A file as an in-toto resource: its name, SHA-256 and any further details. */
export const describeFile = (path, more = {}) => ({
  name: basename(path),
  digest: { sha256: digestOf(path, 'sha256') },
  ...more,
})

/** The tarball as a subject; npm knows it by its SHA-512. */
export const describeTarball = (path) => ({
  name: basename(path),
  digest: { sha256: digestOf(path, 'sha256'), sha512: digestOf(path, 'sha512') },
})

/** An image by its digest, as a resource. */
const describeImage = ({ name, digest }) => ({
  name,
  uri: `pkg:docker/${name.split(':')[0]}@${digest}?tag=${name.split(':')[1]}`,
  digest: { sha256: digest.replace('sha256:', '') },
})

/**
 * An in-toto statement (v1) with SLSA provenance (v1): which files and images were built, from what, and how. `base`:
 * the base image, if there are images.
 */
export const createStatement = ({
  subject,
  version,
  commit,
  lockFile,
  base,
  lists,
  tools,
  startedOn,
  finishedOn,
  id,
}) => ({
  _type: 'https://in-toto.io/Statement/v1',
  subject,
  predicateType: 'https://slsa.dev/provenance/v1',
  predicate: {
    buildDefinition: {
      buildType,
      externalParameters: { script: 'scripts/release.mjs', commit, version },
      internalParameters: tools,
      resolvedDependencies: [
        { name: 'feedback-connector', digest: { gitCommit: commit } },
        describeFile(lockFile),
        ...(base === undefined ? [] : [describeImage(base)]),
      ],
    },
    runDetails: {
      builder: { id: localBuilder },
      metadata: { invocationId: id, startedOn, finishedOn },
      byproducts: lists.map((path) => describeFile(path, { mediaType: 'application/vnd.cyclonedx+json' })),
    },
  },
})
