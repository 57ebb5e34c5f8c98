import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'

const here = import.meta.dirname

/** Installs the peer, which the connector itself must not depend on. Returns false if that fails. */
export const preparePeer = () => {
  if (existsSync(join(here, 'node_modules', 'faros-airbyte-cdk'))) return true
  try {
    execFileSync('npm', ['ci', '--ignore-scripts', '--no-audit'], { cwd: here, stdio: ['ignore', 'ignore', 'ignore'] })
    return true
  } catch {
    process.stderr.write(
      'bench: faros-airbyte-cdk could not be installed (npm ci in bench/), so its row is left out.\n',
    )
    return false
  }
}
