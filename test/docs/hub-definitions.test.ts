import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { docsFolder } from '../support/doc-blocks'
import { hubErrors } from '../support/hub-schema'
import { runProgram } from '../support/program'

type Definition = Readonly<Record<string, unknown>> & {
  readonly capabilities: ReadonlyArray<string>
  readonly settings: ReadonlyArray<Readonly<Record<string, unknown>>>
}

const read = (page: string): Definition => parse(readFileSync(join(docsFolder, page), 'utf8'))
const without = (definition: Definition, key: string): object =>
  Object.fromEntries(Object.entries(definition).filter(([name]) => name !== key))

describe.each([
  ['extractor', 'meltano-hub.yml'],
  ['loader', 'meltano-hub-target.yml'],
] as const)('the %s in %s', (kind, page) => {
  const definition = read(page)

  it('is complete by the schemas of the hub', () => {
    expect(hubErrors(kind, definition)).toEqual([])
  })

  it.each(Object.keys(definition))('is not complete without %s', (key) => {
    expect(hubErrors(kind, without(definition, key)).join()).toMatch(key)
  })

  const [first = {}] = definition.settings
  it.each([
    ['a key that the hub does not know', { colour: 'blue' }, /additional/],
    [
      'a capability that the hub does not know',
      { capabilities: [...definition.capabilities, 'dance'] },
      /capabilities/,
    ],
    ['a status that the hub does not know', { maintenance_status: 'asleep' }, /maintenance_status/],
    ['a repository without TLS', { repo: 'http://git.example.com' }, /repo/],
    ['a logo elsewhere', { logo_url: 'icon.svg' }, /logo_url/],
    ['a setting twice', { settings: [...definition.settings, { ...first, label: 'Again' }] }, /base_url stands twice/],
    ['a setting of no kind', { settings: [{ ...first, kind: 'text' }, ...definition.settings.slice(1)] }, /kind/],
    ['options without any', { settings: [{ ...first, kind: 'options' }, ...definition.settings.slice(1)] }, /options/],
    ['a group of what is no setting', { settings_group_validation: [['token']] }, /token, which is no setting/],
  ])('is refused with %s', (_, change, expected) => {
    expect(hubErrors(kind, { ...definition, ...change }).join()).toMatch(expected)
  })
})

it('every capability of the extractor is one that its help or description shows', async () => {
  const { stdout } = await runProgram('tap-feedback', ['--help'])
  const shown: Readonly<Record<string, RegExp>> = {
    catalog: /--catalog/,
    properties: /--properties/,
    discover: /--discover/,
    state: /--state/,
    about: /--about/,
    test: /--test/,
  }
  const { capabilities } = read('meltano-hub.yml')
  // The logs and the table versions are shown by test/cdk/singer/encode.test.ts.
  const others = ['structured-logging', 'activate-version']
  expect(capabilities.filter((one) => shown[one] === undefined && !others.includes(one))).toEqual([])
  for (const one of capabilities.filter((name) => !others.includes(name))) expect(stdout).toMatch(shown[one] ?? /^$/)
})
