import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'

const root = join(__dirname, '..', '..')
const copy = mkdtempSync(join(tmpdir(), 'recipes-'))
afterAll(() => rmSync(copy, { recursive: true }))

const run = (command: string) => execFileSync('bash', ['-euc', command], { cwd: copy, encoding: 'utf8' })

/** The files of this checkout as they are now, with its packages and its build. */
beforeAll(() => {
  const files = execFileSync('git', ['ls-files', '-z'], { cwd: root, encoding: 'utf8' }).split('\0')
  for (const file of files.filter((path) => path !== '' && existsSync(join(root, path)))) {
    mkdirSync(dirname(join(copy, file)), { recursive: true })
    cpSync(join(root, file), join(copy, file))
  }
  for (const folder of ['node_modules', 'build']) symlinkSync(join(root, folder), join(copy, folder))
  run('git init --quiet && git add --all && git -c user.name=Test -c user.email=test@example.com commit -qm Copy')
})
beforeEach(() => void run('git reset --quiet --hard && git clean --quiet --force -d'))

type Recipe = {
  readonly name: string
  readonly patch: string
  readonly commands: string
  /** The files that the commands write, as the sentence after them says. */
  readonly written: ReadonlyArray<string>
}

const page = readFileSync(join(root, 'CONTRIBUTING.md'), 'utf8')
const recipes = page.split(/^## (?=Add )/m).flatMap((section): ReadonlyArray<Recipe> => {
  const [, patch = '', commands = ''] = /```diff\n([\s\S]*?)```\n\n```sh\n([\s\S]*?)```/.exec(section) ?? []
  const [written = ''] = /^`-u` writes [\s\S]*?(?=[.:](\s|$))/m.exec(section) ?? []
  const name = section.slice(0, section.indexOf('\n'))
  const paths = [...written.matchAll(/`(\w[^`]*\/[^`]*)`/g)].map(([, path = '']) => path)
  return patch === '' ? [] : [{ name, patch, commands, written: paths }]
})

it('CONTRIBUTING.md is short and has recipes', () => {
  expect(page.length).toBeLessThan(9_216)
  expect(recipes.map(({ name }) => name)).toEqual(['Add an attribute', 'Add a stream', 'Add an operation'])
})

it.each(recipes)('$name: the patch applies, the commands pass, the named files change', (recipe) => {
  writeFileSync(join(copy, '.git', 'recipe.diff'), recipe.patch)
  run('git apply .git/recipe.diff')
  run('npx tsc -p test --noEmit')
  run('npx biome check connector test')
  run(recipe.commands)
  const patched = [...recipe.patch.matchAll(/^\+\+\+ b\/(.*)$/gm)].map(([, path = '']) => path)
  const changed = run('git status --porcelain --untracked-files=all').trimEnd().split('\n')
  expect(changed.map((line) => line.slice(3)).sort()).toEqual([...new Set([...patched, ...recipe.written])].sort())
})
