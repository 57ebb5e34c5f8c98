import { chmodSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { drawFactor, drawSeed } from './draws'

/**
 * Gives the tests and the programs that they start one folder for temporary files, and removes it. Some run as another
 * user.
 */
export default (): (() => void) => {
  console.log(`Properties: DRAWS=${drawFactor} SEED=${drawSeed}`)
  const folder = mkdtempSync(join(tmpdir(), 'feedback-tests-'))
  chmodSync(folder, 0o1777)
  process.env.TMPDIR = folder
  return () => rmSync(folder, { recursive: true, force: true })
}
