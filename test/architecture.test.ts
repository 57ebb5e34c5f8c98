import { readdirSync, readFileSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { join, posix } from 'node:path'
import { describe, expect, it } from 'vitest'
import manifest from '../package.json'

type ImportRule = {
  /** Folders of ours, or single files, that it may import besides itself; `all` for the edge. */
  readonly ours: ReadonlyArray<string> | 'all'
  readonly outside: ReadonlyArray<string> | 'all'
}

const commonPackages = ['fp-ts', 'io-ts']
const freeRule: ImportRule = { ours: 'all', outside: 'all' }
const http = ['node:http', 'node:https', 'node:http2', 'node:net', 'node:tls', 'node:dgram']

/** What the build puts into a file of ours with all that it imports. */
const bundledPackages: Readonly<Record<string, ReadonlyArray<string>>> = { 'snapshot/charts.ts': ['echarts'] }

/** Who may import whom: the table of the design, one row a folder of connector/. The files beside them may import all. */
const importTable: Readonly<Record<string, ImportRule>> = {
  cdk: { ours: [], outside: [] },
  api: { ours: ['cdk'], outside: [...http, 'axios', 'bottleneck', 'ioredis', 'lossless-json'] },
  streams: { ours: ['cdk', 'api'], outside: [] },
  sinks: { ours: ['cdk', 'api'], outside: [] },
  snapshot: { ours: ['cdk'], outside: ['@duckdb/node-api', ...Object.values(bundledPackages).flat()] },
  sandbox: { ours: ['cdk', 'api', 'snapshot/database'], outside: http },
  bin: freeRule,
  commands: freeRule,
}

const withoutComments = (text: string): string => text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|\s)\/\/.*$/gm, '$1')

const importsOf = (text: string): ReadonlyArray<string> =>
  [
    /^(?:import|export)\b[^;'"`=(]*?\bfrom\s*'([^']+)'/gm,
    /^import\s+'([^']+)'/gm,
    /\b(?:import|require)\(\s*'([^']+)'/g,
  ].flatMap((pattern) => [...withoutComments(text).matchAll(pattern)].map(([, name = '']) => name))

const isNode = (name: string): boolean => name.startsWith('node:') || builtinModules.includes(name)
const packageOf = (name: string): string =>
  name
    .split('/')
    .slice(0, name.startsWith('@') ? 2 : 1)
    .join('/')
const unitOf = (path: string): string => (path.split('/')[0] ?? '').replace(/\.ts$/, '')

const mayImport = (rule: ImportRule, unit: string, file: string, name: string): boolean => {
  if (!name.startsWith('.')) {
    if (rule.outside === 'all') return true
    return isNode(name)
      ? !http.includes(name) || rule.outside.includes(name)
      : [...commonPackages, ...rule.outside].includes(packageOf(name))
  }
  if (rule.ours === 'all') return true
  const target = posix.join(posix.dirname(file), name).replace(/\.js$/, '')
  return unitOf(target) === unit || rule.ours.some((allowed) => target === allowed || target.startsWith(`${allowed}/`))
}

/** The forbidden imports of a file, given by its path under connector/. */
const forbidden = (file: string, text: string): ReadonlyArray<string> => {
  const unit = unitOf(file)
  const rule = file.includes('/') ? importTable[unit] : freeRule
  if (rule === undefined) return [`${file}: the table has no row for ${unit}`]
  return importsOf(text)
    .filter((name) => !mayImport(rule, unit, file, name))
    .map((name) => `${file} may not import ${name}`)
}

/** Uses of the global `process`, or of the module of that name. */
const namesProcess = (text: string): boolean =>
  importsOf(text).some((name) => name === 'node:process' || name === 'process') ||
  /(?<![.\w$])process\s*(?:\?\.|\.|\[)[\w']|[=(,]\s*process\b(?!\s*[:=])/.test(
    withoutComments(text).replace(/'(?:[^'\\\n]|\\.)*'/g, "''"),
  )

const root = join(__dirname, '..', 'connector')
const sources = readdirSync(root, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts'))
  .map((path) => ({ file: path.replaceAll('\\', '/'), text: readFileSync(join(root, path), 'utf8') }))

describe('connector/', () => {
  it('imports only what the table allows', () => {
    expect(sources.length).toBeGreaterThan(10)
    expect(sources.flatMap(({ file, text }) => forbidden(file, text))).toEqual([])
  })

  it('names process in main.ts alone', () => {
    expect(sources.filter(({ text }) => namesProcess(text)).map(({ file }) => file)).toEqual(
      sources.some(({ file }) => file === 'main.ts') ? ['main.ts'] : [],
    )
  })

  it('needs at run time only packages that are installed with it', () => {
    const outside = sources
      .flatMap(({ file, text }) => importsOf(text).map((name) => ({ file, name })))
      .filter(({ name }) => !name.startsWith('.') && !isNode(name))
      .filter(({ file, name }) => !bundledPackages[file]?.includes(packageOf(name)))
    const missing = [...new Set(outside.map(({ name }) => packageOf(name)))].filter(
      (name) => !Object.hasOwn(manifest.dependencies, name),
    )
    expect(missing).toEqual([])
  })
})

describe('the check itself', () => {
  it.each([
    ['cdk/read.ts', "import { Api } from '../api/api'"],
    ['cdk/read.ts', "import axios from 'axios'"],
    ['cdk/deep/read.ts', "export {\n  a,\n} from '../../main'"],
    ['api/http.ts', "import * as duckdb from '@duckdb/node-api'"],
    ['streams/reviews.ts', "import { open } from '../snapshot/database'"],
    ['snapshot/save.ts', "import { Review } from '../api/model/review'"],
    ['snapshot/save.ts', "import { createServer } from 'node:http'"],
    ['sandbox/service.ts', "const x = await import('../snapshot/save')"],
    ['cdk/cli.ts', "const axios = require('axios')"],
    ['elsewhere/x.ts', ''],
  ])('refuses %s: %s', (file, text) => expect(forbidden(file, text)).toHaveLength(1))

  it.each([
    ['cdk/read.ts', "import * as E from 'fp-ts/Either'\nimport { parseArgs } from 'node:util'"],
    ['api/http.ts', "import { configFailure } from '../cdk/failure'\nimport { x } from './model/review'"],
    ['sandbox/service.ts', "import { open } from '../snapshot/database'"],
    ['sandbox/service.ts', "const x = await import('../snapshot/database.js')"],
    ['snapshot/save.ts', "// import axios from 'axios'\nconst sql = `select * from 'a.json'`"],
    ['main.ts', "import { start } from './sandbox/serve'"],
  ])('allows %s: %s', (file, text) => expect(forbidden(file, text)).toEqual([]))

  it.each(['process.exit(1)', 'const { env } = process', "import { env } from 'node:process'", 'run(process)'])(
    'sees process in %s',
    (text) => expect(namesProcess(text)).toBe(true),
  )

  it.each(['// the process. It ends', "log('process.exit')", '/** Ends the process.\n */', 'child.process.pid'])(
    'sees none in %s',
    (text) => expect(namesProcess(text)).toBe(false),
  )
})
