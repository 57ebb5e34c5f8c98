import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'

/** A model, view or seed as the dbt package describes it, with its columns in order. */
export type DescribedRelation = {
  readonly name: string
  readonly description: string
  readonly columns: ReadonlyArray<{ readonly name: string; readonly description: string }>
}

const read = (file: string, list: 'models' | 'seeds'): ReadonlyArray<DescribedRelation> =>
  parse(readFileSync(join(__dirname, '..', '..', 'dbt', file), 'utf8'))[list]

/** What a snapshot has too: the models, the views of reviews, and the tables that the user fills. */
export const describedRelations = {
  models: ['marts/marts.yml', 'scorecards/scorecards.yml'].flatMap((file) => read(`models/${file}`, 'models')),
  views: read('models/staging/staging.yml', 'models').filter(({ name }) => name.endsWith('_current')),
  seeds: read('seeds/seeds.yml', 'seeds'),
}
