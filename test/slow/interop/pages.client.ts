import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Sandbox, startSandbox } from '../../../connector/sandbox/start'
import { codeBlocks, fillIn } from '../../support/doc-blocks'
import { createJsonFolder, type JsonFolder } from '../../support/files'
import { pythonProgram, quickProgram, runShellOrThrow, type ShellOptions } from './shell'

const root = join(__dirname, '..', '..', '..')

let sandbox: Sandbox
let project: JsonFolder

beforeAll(async () => {
  sandbox = await startSandbox({ reviews: 300 })
})
afterAll(() => sandbox.close())

/**
 * Runs the blocks of a page in a new folder, with the virtual environment active. Quick stand-ins come before its
 * programs on the path.
 */
const follow = async (page: string, environment: 'meltano' | 'airbyte', text: (page: string) => string) => {
  project = createJsonFolder()
  const how: ShellOptions = {
    cwd: project.path,
    env: {
      CHECKOUT: root,
      PATH: [dirname(quickProgram(environment, 'pip')), pythonProgram(environment, ''), process.env.PATH].join(':'),
      npm_config_ignore_scripts: 'true',
    },
  }
  try {
    return await runShellOrThrow('bash', ['-euo', 'pipefail', '-c', fillIn(text(page), sandbox)], how)
  } finally {
    project.remove()
  }
}

const shellBlocks = (page: string) => codeBlocks(page, 'sh').join('\n')

it('the commands of meltano.md run to their end', async () => {
  const output = await follow('meltano.md', 'meltano', shellBlocks)
  expect(output).toMatch(/Plugin configuration is valid/)
  expect(output).toMatch(/"singer_state"/)
  expect(output).toMatch(/^# tap-feedback$/m)
})

it('the commands of pyairbyte.md run to their end, and its script reads nothing in a second run', async () => {
  const [script = ''] = codeBlocks('pyairbyte.md', 'python')
  const twice = `cat > read.py <<'EOF'\n${script}\nEOF\npython read.py\npython read.py`
  const output = await follow('pyairbyte.md', 'airbyte', (page) => `${shellBlocks(page)}\n${twice}`)
  const came = [...output.matchAll(/^(\d+) records came$/gm)].map(([, count]) => Number(count))
  expect(came).toEqual([expect.any(Number), 0])
  expect(came[0]).toBeGreaterThan(300)
})
