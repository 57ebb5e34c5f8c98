import { expect, it } from 'vitest'
import { type DescribedRelation, describedRelations } from '../support/described-relations'

const section = ({ name, description, columns }: DescribedRelation): string =>
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
  const { models, views, seeds } = describedRelations
  const sections = { Models: models, 'Views of what reviews hold': views, 'Tables that you fill': seeds }
  const parts = Object.entries(sections).map(([title, list]) => [`## ${title}`, '', ...list.map(section)].join('\n'))
  await expect([intro, ...parts].join('\n')).toMatchFileSnapshot('../../docs/columns.md')
})
