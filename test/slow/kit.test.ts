import { execFile } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import manifest from '../../package.json'
import { sandboxConfig, startSmallSandbox } from '../support/sandbox'

const root = join(__dirname, '..', '..')

/** The commands of docs/kit.md: with npm, those that differ with pnpm, and those that run the source by hand. */
const [withNpm = '', withPnpm = '', byHand = ''] = [
  ...readFileSync(join(root, 'docs', 'kit.md'), 'utf8').matchAll(/^```sh\n([\s\S]*?)^```$/gm),
].map(([, commands]) => commands)

const managers = [
  { manager: 'npm', commands: withNpm },
  ...['pnpm@9', 'pnpm@10'].map((manager) => ({
    manager,
    commands: withNpm.replace(/^npm install [\s\S]*?(?=^cp )/m, () => withPnpm),
  })),
]

type Outcome = { readonly status: number; readonly output: string }

/** An empty folder, and how to run commands in it; `pnpm` is the one of this version. */
const createFolder = (pnpm = 'pnpm@10') => {
  const folder = mkdtempSync(join(tmpdir(), 'kit-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const [home, tools] = [join(folder, 'home'), join(folder, 'tools')]
  mkdirSync(home)
  mkdirSync(tools)
  writeFileSync(join(tools, 'pnpm'), `#!/bin/sh\nexec npx --yes ${pnpm} "$@"\n`)
  chmodSync(join(tools, 'pnpm'), 0o755)
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  // The checkout is built already, and nothing that is installed needs a script.
  const settings = { CHECKOUT: root, PATH: `${tools}:${env.PATH}`, npm_config_ignore_scripts: 'true' }
  return {
    home,
    run: (commands: string): Promise<Outcome> =>
      new Promise((resolve) =>
        execFile(
          'bash',
          ['-emc', commands],
          { cwd: home, env: { ...env, ...settings }, maxBuffer: 1e8 },
          (error, stdout, stderr) =>
            resolve({ status: typeof error?.code === 'number' ? error.code : 0, output: stdout + stderr }),
        ),
      ),
  }
}

describe('docs/kit.md in an empty folder', () => {
  it.each(managers)('compiles and passes its test with $manager', async ({ manager, commands }) => {
    expect(commands).toMatch(manager === 'npm' ? /^npm install .* fp-ts io-ts$/m : /^pnpm add .* fp-ts io-ts$/m)
    const { run } = createFolder(manager)
    const tried = await run(commands)
    expect(tried.output).toMatch(/^# pass 3$/m)
    expect([tried.status, tried.output]).toEqual([0, expect.stringMatching(/^# fail 0$/m)])
    const used = await run(byHand)
    expect([used.status, used.output.match(/^\{"type":"RECORD","stream":"articles"/gm)?.length]).toEqual([0, 230])
    expect(used.output).toContain('"status":"SUCCEEDED"')
  })

  it('works without DuckDB, which is installed when a snapshot needs it', async () => {
    const { home, run } = createFolder()
    const sandbox = await startSmallSandbox()
    writeFileSync(join(home, 'config.json'), JSON.stringify(sandboxConfig(sandbox)))
    const sync = 'npx feedback sync --config config.json --db reviews.duckdb'
    await run(withNpm)
    const installed = await run('npm install --omit=dev --omit=optional; ls node_modules/*; node --test')
    expect([installed.status, installed.output]).toEqual([0, expect.stringMatching(/^# fail 0$/m)])
    expect(installed.output).not.toContain('node-api')
    const refused = await run(sync)
    expect(refused).toEqual({ status: 78, output: expect.stringContaining('Run npm install @duckdb/node-api') })
    await run('npm install @duckdb/node-api')
    const loaded = await run(sync)
    expect([loaded.status, loaded.output]).toEqual([0, expect.stringContaining('reviews')])
  })
})

it('the commands install the package of this version', () =>
  expect(withNpm).toContain(`./feedback-connector-${manifest.version}.tgz`))
