import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/** The version of this package, which package.json alone knows. */
export const readPackageVersion = (): string => {
  const manifest: { readonly version: string } = JSON.parse(
    readFileSync(join(__dirname, '..', '..', 'package.json'), 'utf8'),
  )
  return manifest.version
}
