import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { airbyteConnectors, brokenConnectors } from '../../interop/airbyte-connectors'
import { type AirbyteConnector, airbyteRules, foreignRules } from '../../interop/airbyte-rules'
import { pythonProgram } from './shell'

const python = pythonProgram('airbyte-rules', 'python')

/** A folder with the connector as the repository of the platform would have it; package.json as a pyproject.toml. */
const layOut = (path: string, connector: AirbyteConnector): string => {
  const { kind, metadata, page, guide, icon, spec, manifest, lock, files } = connector
  const code = `airbyte-integrations/connectors/${kind}-feedback`
  const pages = `docs/integrations/${kind}s`
  const poetry = `[tool.poetry]
license = "${manifest.license}"
version = "${manifest.version}"
[tool.poetry.dependencies]
`
  const texts: ReadonlyArray<readonly [string, string | undefined]> = [
    [`${code}/metadata.yaml`, metadata],
    [`${code}/icon.svg`, icon],
    [`${code}/${kind}_feedback/spec.json`, JSON.stringify({ connectionSpecification: spec })],
    [`${code}/pyproject.toml`, poetry],
    [`${code}/poetry.lock`, lock === undefined ? undefined : ''],
    [`${pages}/feedback.md`, page],
    [`${pages}/feedback-migrations.md`, guide],
    ...[...files]
      .filter(([name]) => name.startsWith('connector/'))
      .map(([name, text]) => [`${code}/${name}`, text] as const),
  ]
  for (const [name, text] of texts) {
    if (text === undefined) continue
    mkdirSync(dirname(join(path, name)), { recursive: true })
    writeFileSync(join(path, name), text)
  }
  return path
}

type Answers = Readonly<Record<string, Readonly<Record<string, string | null>>>>

/** What the platform's rules say of each folder. One process answers for all of them, since it starts slowly. */
const ask = (folders: ReadonlyArray<string>): Answers =>
  JSON.parse(
    execFileSync(python, [join(__dirname, 'rules.py'), ...folders], { encoding: 'utf8', maxBuffer: 100_000_000 }),
  )

/** Rules that read the files of another language, or find more here than as written. */
const incomparable = new Set([
  ...airbyteRules.flatMap(({ name, failsAsWritten }) => (failsAsWritten === undefined ? [] : [name])),
  ...Object.keys(foreignRules),
  'Python connectors must have a CDK tag in metadata',
  'Connectors must use Poetry for dependency management',
])

/**
 * Each connector as it is and with each fault; what reads every file is not compared, so that the broken ones have
 * none.
 */
const connectors = airbyteConnectors.map((connector) => ({
  kind: connector.kind,
  connector,
  whole: `${connector.kind}-whole`,
  cases: brokenConnectors.map(({ rule, what, spoil }, index) => ({
    rule,
    what,
    name: `${connector.kind}-${index}`,
    broken: spoil(connector),
  })),
}))

describe.skipIf(!existsSync(python))("Airbyte's own quality rules", () => {
  let folder: string
  let answers: Answers
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'rules-'))
    const folders = connectors.flatMap(({ connector, whole, cases }) => [
      layOut(join(folder, whole), connector),
      ...cases.map(({ name, broken }) => layOut(join(folder, name), { ...broken, files: new Map() })),
    ])
    answers = ask(folders)
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  const answersOf = (name: string) => answers[join(folder, name)] ?? {}

  describe.each(connectors.map((one) => [one.kind, one] as const))('%s', (_, { whole, cases }) => {
    it('pass, but for those that docs/airbyte.md says cannot', () => {
      const found = answersOf(whole)
      const failed = Object.keys(found).filter((rule) => found[rule] !== null && !incomparable.has(rule))
      expect(failed.map((rule) => [rule, found[rule]])).toEqual([])
      const expected = airbyteRules.filter(({ failsAsWritten }) => failsAsWritten !== undefined)
      expect(expected.filter(({ name }) => found[name] === null)).toEqual([])
    })

    it('are all known here', () => {
      const known = [...airbyteRules.map(({ name }) => name), ...Object.keys(foreignRules)]
      const names = Object.keys(answersOf(whole))
      expect(names.length).toBeGreaterThan(15)
      expect(names.filter((name) => !known.includes(name))).toEqual([])
    })

    it('agree with ours on every broken input', () => {
      const disagreements = cases.flatMap(({ rule, what, name: place, broken }) =>
        airbyteRules.flatMap(({ name, find }) => {
          const theirs = answersOf(place)[name]
          if (theirs === undefined || incomparable.has(name)) return []
          const ours = find(broken)
          return (theirs === null) === (ours.length === 0) ? [] : [{ rule, what, name, theirs, ours }]
        }),
      )
      expect(disagreements).toEqual([])
      const missed = cases.filter(({ rule, name }) => answersOf(name)[rule] === null && !incomparable.has(rule))
      expect(missed.map(({ rule, what }) => [rule, what])).toEqual([])
    })
  })
})
