import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { basename, join, posix } from 'node:path'
import { describe, expect, it } from 'vitest'
import manifest from '../package.json'
import { defects } from './simulation/defects'

type Room = {
  /** Rooms that a file of this room may import, through their index alone. */
  readonly ours: ReadonlyArray<string>
  /** Packages beside fp-ts and io-ts, and Node's network modules. */
  readonly outside: ReadonlyArray<string>
}

const everywhere = ['fp-ts', 'io-ts']
const network = ['node:http', 'node:https', 'node:http2', 'node:net', 'node:tls', 'node:dgram']

/** What the build bundles into a file of ours together with all that it imports. */
const bundled: Readonly<Record<string, ReadonlyArray<string>>> = { 'report/charts.ts': ['echarts'] }

/** Who may import whom: a row for each folder of connector/, and one for main.ts. */
const rooms: Readonly<Record<string, Room>> = {
  cdk: { ours: [], outside: ['lossless-json'] },
  api: { ours: ['cdk'], outside: [...network, 'axios', 'bottleneck', 'ioredis'] },
  reading: { ours: ['cdk'], outside: [] },
  export: { ours: ['api', 'cdk', 'cdk/json/scanner', 'reading'], outside: [] },
  streams: { ours: ['api', 'export', 'cdk', 'reading'], outside: [] },
  sinks: { ours: ['api', 'cdk'], outside: [] },
  snapshot: { ours: ['cdk'], outside: ['@duckdb/node-api'] },
  lake: { ours: ['cdk', 'snapshot', 'snapshot/load', 'snapshot/store'], outside: [] },
  audit: { ours: ['cdk', 'snapshot', 'snapshot/store'], outside: [] },
  report: { ours: ['cdk', 'snapshot', 'snapshot/store'], outside: Object.values(bundled).flat() },
  sandbox: { ours: ['api', 'cdk', 'snapshot/store'], outside: network },
  config: { ours: ['cdk'], outside: [] },
  runtime: {
    ours: [
      'api',
      'audit',
      'cdk',
      'config',
      'export',
      'lake',
      'reading',
      'report',
      'sandbox',
      'sinks',
      'snapshot',
      'streams',
    ],
    outside: [],
  },
  cli: {
    ours: [
      'api',
      'audit',
      'cdk',
      'config',
      'export',
      'lake',
      'reading',
      'report',
      'runtime',
      'sandbox',
      'sinks',
      'snapshot',
      'streams',
    ],
    outside: [],
  },
  'main.ts': { ours: ['cli', 'cdk'], outside: [] },
  bin: { ours: ['main.ts'], outside: [] },
}

/** The same file name may occur in both protocols' folders; the path distinguishes them. */
const protocolFiles = ['encode.ts', 'decode.ts', 'catalog.ts', 'state.ts', 'log.ts']

const withoutComments = (text: string): string => text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|\s)\/\/.*$/gm, '$1')

const importsOf = (text: string): ReadonlyArray<string> =>
  [
    /^(?:import|export)\b[^;'"`=(]*?\bfrom\s*'([^']+)'/gm,
    /^import\s+'([^']+)'/gm,
    /\b(?:import|require)\(\s*'([^']+)'/g,
  ].flatMap((pattern) => [...withoutComments(text).matchAll(pattern)].map(([, name = '']) => name))

/** The text without type-only imports, which do not appear in the compiled file. */
const withoutTypes = (text: string): string => text.replace(/^(?:import|export) type\b[^;'"`=(]*?'[^']+'/gm, '')

const isNode = (name: string): boolean => name.startsWith('node:') || builtinModules.includes(name)
const packageOf = (name: string): string =>
  name
    .split('/')
    .slice(0, name.startsWith('@') ? 2 : 1)
    .join('/')
/** The room of a path under connector/. A file at the root is its own room. */
const roomOf = (path: string): string => (path.includes('/') ? path.slice(0, path.indexOf('/')) : `${path}.ts`)
const withoutSuffix = (path: string): string => path.replace(/\.(js|ts)$/, '')

/** What a relative import of `file` names, as a path under connector/ without its ending. */
const targetOf = (file: string, name: string): string =>
  withoutSuffix(posix.join(posix.dirname(file), name)).replace(/\/index$/, '')

const mayImport = (file: string, name: string): boolean => {
  const room = roomOf(withoutSuffix(file))
  const rule = rooms[room]
  if (rule === undefined) return false
  if (!name.startsWith('.'))
    return isNode(name)
      ? !network.includes(name) || rule.outside.includes(name)
      : [...everywhere, ...rule.outside].includes(packageOf(name))
  const target = targetOf(file, name)
  return roomOf(target) === room || rule.ours.map(withoutSuffix).includes(target)
}

/** The forbidden imports of a file, given by its path under connector/. */
const forbidden = (file: string, text: string): ReadonlyArray<string> =>
  importsOf(text)
    .filter((name) => !mayImport(file, name))
    .map((name) => `${file} may not import ${name}`)

/** Uses of the global `process`, or of the module of that name. */
const namesProcess = (text: string): boolean =>
  importsOf(text).some((name) => name === 'node:process' || name === 'process') ||
  /(?<![.\w$])process\s*(?:\?\.|\.|\[)[\w']|[=(,]\s*process\b(?!\s*[:=])/.test(
    withoutComments(text).replace(/'(?:[^'\\\n]|\\.)*'/g, "''"),
  )

const exportsOf = (text: string): ReadonlyArray<string> => [
  ...new Set(
    [
      ...withoutComments(text).matchAll(
        /^export (?:abstract )?(?:const enum|const|let|type|interface|class|enum|(?:async )?function\*?) (\w+)/gm,
      ),
    ].map(([, name = '']) => name),
  ),
]

/** State of a module that would outlive a run, and changes of what all modules share. */
const moduleState = (text: string): ReadonlyArray<string> =>
  [
    /^(?:export )?(?:let|var) \w+/gm,
    /^(?:export )?const \w+[^=\n]* = new (?:Map|Set|WeakMap|WeakSet)(?:<[^(]*>)?\(\)/gm,
    /^(?:export )?const \w+(?:: \w+\[\])? = \[\]$/gm,
    /\bdefineProperty\(\s*(?:globalThis|global)\b|\b(?:globalThis|global)\.\w+ = |\.prototype\.\w+ = /g,
  ].flatMap((pattern) => [...withoutComments(text).matchAll(pattern)].map(([found]) => found))

const root = join(__dirname, '..')
const sources = readdirSync(join(root, 'connector'), { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts'))
  .map((path) => ({
    file: path.replaceAll('\\', '/'),
    text: readFileSync(join(root, 'connector', path), 'utf8'),
  }))
const isIndex = (file: string): boolean => basename(file) === 'index.ts'
const repeated = (names: ReadonlyArray<string>): ReadonlyArray<string> =>
  [...new Set(names.filter((name, i) => names.indexOf(name) !== i))].sort()

/** Files by path without ending; an index by its folder. */
const known = new Map(sources.map(({ file, text }) => [withoutSuffix(file).replace(/\/index$/, ''), text]))

/** The first circle that a walk along the imports meets, as the path around it. */
const circle = (imports: ReadonlyMap<string, ReadonlyArray<string>>): ReadonlyArray<string> | undefined => {
  const done = new Set<string>()
  const visit = (file: string, path: ReadonlyArray<string>): ReadonlyArray<string> | undefined => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file]
    if (done.has(file)) return undefined
    for (const next of imports.get(file) ?? []) {
      const found = visit(next, [...path, file])
      if (found !== undefined) return found
    }
    done.add(file)
    return undefined
  }
  for (const file of imports.keys()) {
    const found = visit(file, [])
    if (found !== undefined) return found
  }
  return undefined
}

const graph = new Map(
  sources.map(({ file, text }) => [
    withoutSuffix(file).replace(/\/index$/, ''),
    importsOf(text)
      .filter((name) => name.startsWith('.'))
      .map((name) => targetOf(file, name))
      .filter((target) => known.has(target)),
  ]),
)

describe('connector/', () => {
  it('imports only what the table allows, other rooms through their index alone', () => {
    expect(sources.length).toBeGreaterThan(100)
    expect(sources.flatMap(({ file, text }) => forbidden(file, text))).toEqual([])
  })

  it('has an index with a docstring in each room that another room imports', () => {
    const doors = Object.keys(rooms).filter((room) => !room.endsWith('.ts') && room !== 'bin')
    for (const room of [...doors, 'snapshot/load', 'snapshot/store'])
      expect(known.get(room) ?? '', room).toMatch(/^\/\*\*[\s\S]{40,}?\*\/\nexport /)
  })

  it('has no circular import, of types neither', () => expect(circle(graph)).toBeUndefined())

  it('gives each exported name one meaning', () =>
    expect(repeated(sources.filter(({ file }) => !isIndex(file)).flatMap(({ text }) => exportsOf(text)))).toEqual([]))

  it('has each file name once in a room', () => {
    const names = sources
      .map(({ file }) => file)
      .filter((file) => !isIndex(file))
      .filter((file) => !(roomOf(file) === 'cdk' && protocolFiles.includes(basename(file))))
    expect(repeated(names.map((file) => `${roomOf(file)}: ${basename(file)}`))).toEqual([])
  })

  it('names process in main.ts alone', () => {
    expect(sources.filter(({ text }) => namesProcess(text)).map(({ file }) => file)).toEqual(['main.ts'])
  })

  it('keeps no state in a module and changes no global', () =>
    expect(sources.flatMap(({ file, text }) => moduleState(text).map((found) => `${file}: ${found}`))).toEqual([]))

  it('needs at run time only packages that are installed with it', () => {
    const outside = sources
      .flatMap(({ file, text }) => importsOf(text).map((name) => ({ file, name })))
      .filter(({ name }) => !name.startsWith('.') && !isNode(name))
      .filter(({ file, name }) => !bundled[file]?.includes(packageOf(name)))
    const missing = [...new Set(outside.map(({ name }) => packageOf(name)))].filter(
      (name) => !Object.hasOwn({ ...manifest.dependencies, ...manifest.optionalDependencies }, name),
    )
    expect(missing).toEqual([])
  })

  it('loads DuckDB, which is optional, in one file', () => {
    const optional = Object.keys(manifest.optionalDependencies)
    expect(optional).toEqual(['@duckdb/node-api'])
    const loading = sources.filter(({ text }) => importsOf(withoutTypes(text)).some((name) => optional.includes(name)))
    expect(loading.map(({ file }) => file)).toEqual(['snapshot/store/duckdb.ts'])
  })
})

describe('docs/architecture.md', () => {
  const text = readFileSync(join(root, 'docs/architecture.md'), 'utf8')
  /** Paths that start with a top-level folder, and those of a room, which start at connector/. */
  const folders = ['connector', 'test', 'docs', 'spec', 'catalog', 'examples', 'bench', 'scripts']
  const roomFolders = Object.keys(rooms).filter((room) => !room.endsWith('.ts'))
  const named = [...text.matchAll(/`(([a-z]+)\/[\w./-]+)`/g)].flatMap(([, path = '', folder = '']) => {
    if (roomFolders.includes(folder)) return [join('connector', path)]
    return folders.includes(folder) ? [path] : []
  })

  it('names files that exist', () => {
    expect(named.length).toBeGreaterThan(40)
    expect(named.filter((path) => ![path, `${path}.ts`].some((one) => existsSync(join(root, one))))).toEqual([])
  })

  it('leads from the answer of the service to stdout in files that are each named once', () => {
    const section = /## A record's way out\n([\s\S]*?)\n## /.exec(text)?.[1] ?? ''
    const way = [...section.matchAll(/^\d+\. `([\w./-]+)`/gm)].map(([, path = '']) => path)
    expect(way.length).toBeGreaterThan(8)
    expect(new Set(way).size).toBe(way.length)
  })
})

describe('a line of ours', () => {
  /** Tests write these, a line for each setting. */
  const generated = ['docs/meltano-hub.yml', 'docs/meltano-hub-target.yml']
  const scripts = ['.ci/run', '.ci/weekly', 'test/slow/run']

  it('has 120 columns at most', () => {
    const paths = execFileSync('git', ['ls-files'], { cwd: root, encoding: 'utf8' })
      .split('\n')
      .filter((path) => /\.(ts|mts|mjs|cjs|sh|sql|yml)$/.test(path) || scripts.includes(path))
      .filter((path) => !generated.includes(path) && existsSync(join(root, path)))
    const long = paths.flatMap((path) =>
      readFileSync(join(root, path), 'utf8')
        .split('\n')
        .flatMap((line, i) => (line.length > 120 ? [`${path}:${i + 1}`] : [])),
    )
    expect(paths.length).toBeGreaterThan(500)
    expect(long).toEqual([])
  })
})

describe('a defect of the simulation', () => {
  it.each(Object.entries(defects))('replaces what its file has: %s', (_, { file, name, isImport }) => {
    const found = isImport
      ? ` from '${name}'\n`
      : new RegExp(`^(export )?(const|(async )?function\\*?) ${name}\\b`, 'm')
    expect(readFileSync(join(root, 'connector', `${file}.ts`), 'utf8')).toMatch(found)
  })
})

describe('the check itself', () => {
  it.each([
    ['cdk/read.ts', "import { Api } from '../api'"],
    ['cdk/read.ts', "import axios from 'axios'"],
    ['cdk/airbyte/encode.ts', "export {\n  a,\n} from '../../main'"],
    ['api/routes.ts', "import * as duckdb from '@duckdb/node-api'"],
    ['streams/reviews.ts', "import { open } from '../snapshot'"],
    ['streams/reviews.ts', "import { toFailure } from '../api/error'"],
    ['snapshot/load/merge.ts', "import { Review } from '../../api'"],
    ['snapshot/load/merge.ts', "import { createServer } from 'node:http'"],
    ['sandbox/server/serve.ts', "const x = await import('../../snapshot')"],
    ['cli/command.ts', "const axios = require('axios')"],
    ['elsewhere/x.ts', "import './y'"],
    ['other.ts', "import './main'"],
  ])('refuses %s: %s', (file, text) => expect(forbidden(file, text)).toHaveLength(1))

  it.each([
    ['cdk/read.ts', "import * as E from 'fp-ts/Either'\nimport { parseArgs } from 'node:util'"],
    ['api/routes.ts', "import { configFailure } from '../cdk'\nimport { x } from './model/review'"],
    ['sandbox/data/review-text.ts', "import { open } from '../../snapshot/store'"],
    ['cli/sandbox.ts', "const x = await import('../sandbox/index.js')"],
    ['snapshot/load/merge.ts', "// import axios from 'axios'\nconst sql = `select * from 'a.json'`"],
    ['bin/feedback.ts', "import { main } from '../main'"],
  ])('allows %s: %s', (file, text) => expect(forbidden(file, text)).toEqual([]))

  it('sees a circle, and none where two ways lead to one file', () => {
    const of = (edges: Readonly<Record<string, ReadonlyArray<string>>>) => circle(new Map(Object.entries(edges)))
    expect(of({ a: ['b'], b: ['c'], c: ['b'] })).toEqual(['b', 'c', 'b'])
    expect(of({ a: ['b', 'c'], b: ['c'], c: [] })).toBeUndefined()
  })

  it.each(['let used = 0', 'const cache = new Map<string, number>()', 'Object.defineProperty(globalThis, name, {})'])(
    'sees state in %s',
    (text) => expect(moduleState(text)).toHaveLength(1),
  )

  it.each(["const words = new Set(['a'])", 'export const f = () => {\n  let a = 1\n}'])('sees none in %s', (text) =>
    expect(moduleState(text)).toEqual([]),
  )

  it.each(['process.exit(1)', 'const { env } = process', "import { env } from 'node:process'", 'run(process)'])(
    'sees process in %s',
    (text) => expect(namesProcess(text)).toBe(true),
  )

  it.each(['// the process. It ends', "log('process.exit')", '/** Ends the process.\n */', 'child.process.pid'])(
    'sees no process in %s',
    (text) => expect(namesProcess(text)).toBe(false),
  )
})
