import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { airbyteConnectors, brokenConnectors } from '../../interop/airbyte-connectors'
import { type AirbyteConnector, airbyteRules, foreignRules } from '../../interop/airbyte-rules'
import { pythonProgram } from './shell'

const python = pythonProgram('airbyte-rules', 'python')

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'rules-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** A folder with the connector as the repository of the platform would have it; package.json as a pyproject.toml. */
const layOut = (path: string, connector: AirbyteConnector): string => {
  const { kind, metadata, page, guide, icon, spec, manifest, lock, files } = connector
  const code = `airbyte-integrations/connectors/${kind}-feedback`
  const pages = `docs/integrations/${kind}s`
  const poetry = `[tool.poetry]\nlicense = "${manifest.license}"\nversion = "${manifest.version}"\n[tool.poetry.dependencies]\n`
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

describe.skipIf(!existsSync(python)).each(airbyteConnectors.map((connector) => [connector.kind, connector] as const))(
  "Airbyte's own quality rules, %s",
  (kind, connector) => {
    it('pass, but for those that docs/airbyte.md says cannot', () => {
      const path = layOut(join(folder, `${kind}-whole`), connector)
      const answers = ask([path])[path] ?? {}
      const failed = Object.keys(answers).filter((rule) => answers[rule] !== null && !incomparable.has(rule))
      expect(failed.map((rule) => [rule, answers[rule]])).toEqual([])
      const expected = airbyteRules.filter(({ failsAsWritten }) => failsAsWritten !== undefined)
      expect(expected.filter(({ name }) => answers[name] === null)).toEqual([])
    })

    it('are all known here', () => {
      const path = layOut(join(folder, `${kind}-known`), connector)
      const known = [...airbyteRules.map(({ name }) => name), ...Object.keys(foreignRules)]
      const names = Object.keys(ask([path])[path] ?? {})
      expect(names.length).toBeGreaterThan(15)
      expect(names.filter((name) => !known.includes(name))).toEqual([])
    })

    it('agree with ours on every broken input', () => {
      const cases = brokenConnectors.map((one, index) => ({ ...one, path: join(folder, `${kind}-${index}`) }))
      // What reads every file is not compared.
      for (const { path, spoil } of cases) layOut(path, { ...spoil(connector), files: new Map() })
      const answers = ask(cases.map(({ path }) => path))
      const disagreements = cases.flatMap(({ rule, what, path, spoil }) =>
        airbyteRules.flatMap(({ name, find }) => {
          const theirs = answers[path]?.[name]
          if (theirs === undefined || incomparable.has(name)) return []
          const ours = find(spoil(connector))
          return (theirs === null) === (ours.length === 0) ? [] : [{ rule, what, name, theirs, ours }]
        }),
      )
      expect(disagreements).toEqual([])
      const missed = cases.filter(({ rule, path }) => answers[path]?.[rule] === null && !incomparable.has(rule))
      expect(missed.map(({ rule, what }) => [rule, what])).toEqual([])
    })
  },
)
