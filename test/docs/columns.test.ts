import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { parse } from 'yaml'

type Described = {
  readonly name: string
  readonly description: string
  readonly columns: ReadonlyArray<{ readonly name: string; readonly description: string }>
}

const packageFolder = join(__dirname, '..', '..', 'dbt')

const described = (file: string, list: 'models' | 'seeds'): ReadonlyArray<Described> =>
  parse(readFileSync(join(packageFolder, file), 'utf8'))[list]

const section = ({ name, description, columns }: Described): string =>
  [
    `### ${name}`,
    '',
    description.trim().replaceAll('\n', ' '),
    '',
    '| column | meaning |',
    '| --- | --- |',
    ...columns.map((column) => `| \`${column.name}\` | ${column.description.trim().replaceAll('|', '\\|')} |`),
    '',
  ].join('\n')

const intro = `# Columns of the views and models

Every column of the views and [models](models.md) in a snapshot, and of the tables that the dbt package makes. A test
generates this page from the package's own descriptions.

> **Most people need only this.** Search this page for the name of the view.
`

it('docs/columns.md describes what the package describes', async () => {
  const models = ['marts/marts.yml', 'scorecards/scorecards.yml'].flatMap((file) =>
    described(`models/${file}`, 'models'),
  )
  const views = described('models/staging/staging.yml', 'models').filter(({ name }) => name.endsWith('_current'))
  const sections = {
    Models: models,
    'Views of what reviews hold': views,
    'Tables that you fill': described('seeds/seeds.yml', 'seeds'),
  }
  const parts = Object.entries(sections).map(([title, list]) => [`## ${title}`, '', ...list.map(section)].join('\n'))
  await expect([intro, ...parts].join('\n')).toMatchFileSnapshot('../../docs/columns.md')
})
