import { readdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

// Writes the version of package.json to all other places that repeat it; npm version runs it. With --check, lists the
// places with another version.

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const read = (path) => readFileSync(join(root, path), 'utf8')

const version = String.raw`\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+?)?`
const pattern = (before, after) => new RegExp(`(?<=${before})${version}(?=${after})`, 'gm')

const pages = ['docs', 'examples'].flatMap((folder) =>
  readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.(md|yaml)$/.test(name))
    .map((name) => `${folder}/${name.replaceAll('\\', '/')}`),
)
/** Each file, the pattern that finds the version in it, and its minimum number of matches. */
const places = [
  ['package-lock.json', pattern('^ {2}"version": "', '"'), 1],
  ['Dockerfile', pattern(String.raw`\bversion=`, String.raw`\s`), 3],
  ['metadata.yaml', pattern('dockerImageTag: "?', '"?$'), 1],
  ['metadata.destination.yaml', pattern('dockerImageTag: "?', '"?$'), 1],
  ['dbt/dbt_project.yml', pattern('^version: ', '$'), 1],
  ['docs/models.md', pattern('revision: v', '$'), 1],
  // Names of images and of the packed package, and the tag of an image in a sentence.
  ...pages.flatMap((path) => [
    [path, pattern(String.raw`\b(?:source|destination)-feedback:`, '[\\s`"]|$'), 0],
    [path, pattern('feedback-connector-', String.raw`\.tgz`), 0],
    [path, pattern('tag `', '`'), 0],
  ]),
]

/** The places with a version other than `wanted`, as `[path, version]`; `(none)` if one is missing. */
export const findOtherVersions = (wanted) =>
  places.flatMap(([path, expression, least]) => {
    const found = read(path).match(expression) ?? []
    return [...found, ...(found.length < least ? ['(none)'] : [])]
      .filter((one) => one !== wanted)
      .map((one) => [path, one])
  })

const writeVersion = (wanted) => {
  for (const [path, expression] of places) {
    const text = read(path)
    const changed = text.replace(expression, wanted)
    if (changed !== text) writeFileSync(join(root, path), changed)
  }
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const { version: wanted } = JSON.parse(read('package.json'))
  if (!process.argv.includes('--check')) writeVersion(wanted)
  for (const [path, other] of findOtherVersions(wanted)) {
    console.error(`${path} has the version ${other}, package.json has ${wanted}.`)
    process.exitCode = 1
  }
}
