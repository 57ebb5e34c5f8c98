import { spawn } from 'node:child_process'
import { renameSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { build } from 'rolldown'

// Bundles the simulation into the build and runs it in a separate process, whose clocks it replaces.
const root = join(import.meta.dirname, '../..')
const file = resolve(root, 'build/simulation.cjs')
// Several may be started at once, and none must read a part of the file.
const bundled = `${file}.${process.pid}`
await build({
  input: join(root, 'test/simulation/main.ts'),
  platform: 'node',
  logLevel: 'warn',
  output: { file: bundled, format: 'cjs' },
})
renameSync(bundled, file)
const child = spawn(process.execPath, [file, ...process.argv.slice(2)], { stdio: 'inherit', cwd: root })
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal))
child.on('close', (code) => process.exit(code ?? 1))
