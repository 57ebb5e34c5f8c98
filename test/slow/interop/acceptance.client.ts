import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Sandbox, startSandbox } from '../../../connector/sandbox/start'
import manifest from '../../../package.json'
import { createJsonFolder, type JsonFolder } from '../../support/files'
import { buildFolder } from '../../support/program'
import { sandboxConfig } from '../../support/sandbox'
import { pythonProgram, runShellOrThrow } from './shell'

const root = join(__dirname, '..', '..', '..')

let sandbox: Sandbox
let files: JsonFolder
beforeAll(async () => {
  sandbox = await startSandbox({ reviews: 300 })
  files = createJsonFolder()
})
afterAll(async () => {
  await sandbox.close()
  files.remove()
})

/**
 * A folder as the runner expects it: the config of the tests, the listing and the secrets of a connector with this
 * name.
 */
const createConnectorFolder = (): string => {
  const folder = join(files.path, 'source-feedback')
  mkdirSync(join(folder, 'secrets'), { recursive: true })
  for (const name of ['acceptance-test-config.yml', 'metadata.yaml', 'test/acceptance'])
    cpSync(join(root, name), join(folder, name), { recursive: true })
  cpSync(join(__dirname, 'acceptance.py'), join(folder, 'test_acceptance.py'))
  writeFileSync(join(folder, 'conftest.py'), 'pytest_plugins = ["airbyte_cdk.test.standard_tests.pytest_hooks"]\n')
  writeFileSync(join(folder, 'secrets', 'config.json'), JSON.stringify(sandboxConfig(sandbox)))
  return folder
}

it("the runner of Airbyte's Python CDK accepts acceptance-test-config.yml and passes on every verb", async () => {
  const cwd = createConnectorFolder()
  // The spec has no published version yet to compare with.
  const args = [
    '-m',
    'pytest',
    '-q',
    '-rs',
    '--connector-image',
    `feedback/source-feedback:${manifest.version}`,
    '--read-from-streams',
    'all',
  ]
  const output = await runShellOrThrow(
    pythonProgram('airbyte', 'python'),
    [...args, '-k', 'not backward_compatibility', 'test_acceptance.py'],
    {
      cwd,
      env: {
        PATH: `${join(root, 'test', 'docs', 'bin')}:${process.env.PATH}`,
        STANDIN_HOME: join(files.path, 'stand-in'),
        STANDIN_BUILD: buildFolder,
      },
    },
  )
  expect(output).toMatch(/^\d+ passed/m)
  expect(Number(/^(\d+) passed/m.exec(output)?.[1])).toBeGreaterThanOrEqual(6)
})
