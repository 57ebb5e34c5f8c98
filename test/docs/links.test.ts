import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'

const root = join(__dirname, '..', '..')
const pages = [
  ...['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'bench/README.md'],
  ...readdirSync(join(root, 'test'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('README.md'))
    .map((name) => `test/${name.replaceAll('\\', '/')}`),
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name.replaceAll('\\', '/')}`),
]
const read = (path: string): string => readFileSync(join(root, path), 'utf8')

/** The anchors of a page's headings, as GitHub makes them. */
const listAnchors = (path: string): ReadonlyArray<string> =>
  [...read(path).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  )

it.each(pages)('the links of %s lead to files and headings that exist', (page) => {
  const links = [...read(page).matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, link = '']) =>
    /^https?:/.test(link) ? [] : [link],
  )
  const broken = links.filter((link) => {
    const [file = '', anchor] = link.split('#')
    const target = file === '' ? page : join(dirname(page), file)
    if (!existsSync(join(root, target))) return true
    return anchor !== undefined && !listAnchors(target).includes(anchor)
  })
  expect(broken).toEqual([])
})

it('no page, message or comment names a page that is gone', () => {
  const folders = ['connector', 'dbt', 'docs', 'examples', 'scripts', 'spec', 'test']
  const files = folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.(ts|mjs|md|ya?ml|sh|sql|json|py)$/.test(name) && !/node_modules|dbt_packages/.test(name))
      .map((name) => `${folder}/${name.replaceAll('\\', '/')}`),
  )
  const gone = [...pages, ...files].flatMap((path) =>
    [...read(path).matchAll(/(?<![\w/.])docs\/[\w/-]+\.md\b/g)].flatMap(([named]) =>
      existsSync(join(root, named)) ? [] : [`${path}: ${named}`],
    ),
  )
  expect(gone).toEqual([])
})
