import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const root = join(__dirname, '..', '..')

/**
 * A folder with what `npm install --omit=optional` of the packed connector puts there: the package without DuckDB, and
 * its dependencies, which are linked and not fetched again.
 */
export const installPacked = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'packed-'))
  const installed = join(folder, 'node_modules', 'feedback-connector')
  const pack = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder]
  const [{ filename }] = JSON.parse(execFileSync('npm', pack, { cwd: root }).toString()) as [{ filename: string }]
  mkdirSync(installed, { recursive: true })
  execFileSync('tar', ['-xzf', join(folder, filename), '-C', installed, '--strip-components=1'])
  for (const name of readdirSync(join(root, 'node_modules')).filter((entry) => !/^(\.|@duckdb$)/.test(entry)))
    symlinkSync(join(root, 'node_modules', name), join(folder, 'node_modules', name))
  return folder
}
