import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

// The compiler does not make files executable, and npm links the bins of dependencies but not those of the package
// itself.
const root = dirname(dirname(fileURLToPath(import.meta.url)))
const modules = join(root, 'node_modules')
const { bin } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

for (const [name, path] of Object.entries(bin)) {
  const file = join(root, path)
  chmodSync(file, 0o755)
  if (!existsSync(modules)) continue
  const link = join(modules, '.bin', basename(name))
  mkdirSync(dirname(link), { recursive: true })
  rmSync(link, { force: true })
  symlinkSync(relative(dirname(link), file), link)
}
