import { readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'rolldown'

// The chart library is 62 MB installed, of which 0.5 MB is used: it is bundled into one file and is not a dependency.
const root = dirname(dirname(fileURLToPath(import.meta.url)))
const text = (path) => readFileSync(join(root, 'node_modules', path), 'utf8').trim()
const licences = ['echarts/NOTICE', 'echarts/LICENSE', 'zrender/LICENSE', 'tslib/LICENSE.txt'].map(text)

await build({
  input: join(root, 'connector/report/charts.ts'),
  platform: 'node',
  logLevel: 'warn',
  output: {
    file: resolve(root, process.argv[2] ?? 'build', 'report/charts.js'),
    format: 'cjs',
    minify: true,
    postBanner: `/*!\n${licences.join('\n\n')}\n*/`.replaceAll(/\*\/(?!$)/g, '* /'),
  },
})
