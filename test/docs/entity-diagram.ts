import * as O from 'fp-ts/Option'
import type { Stream } from '../../connector/cdk/stream'
import { schemaProperties, schemaTypes } from '../support/schema-walk'

/** Attributes of one stream that equal those of another, in the same order; a dot leads into an object. */
export type Relation = {
  readonly from: string
  readonly fromAttributes: ReadonlyArray<string>
  readonly to: string
  readonly toAttributes: ReadonlyArray<string>
  /** How many rows of `to` a row of `from` may have, besides none. */
  readonly rows: 'one' | 'many'
  /** Every row of `to` has its row of `from`. */
  readonly always: boolean
}

const relation = (
  from: string,
  fromAttributes: ReadonlyArray<string>,
  to: string,
  toAttributes: ReadonlyArray<string>,
  { rows = 'many', always = true }: Partial<Pick<Relation, 'rows' | 'always'>> = {},
): Relation => ({ from, fromAttributes, to, toAttributes, rows, always })

const entity = ['entityType', 'entityId']

export const relations: ReadonlyArray<Relation> = [
  relation('reviews', ['id'], 'deleted_reviews', ['id'], { rows: 'one', always: false }),
  relation('locations', ['id'], 'reviews', ['location.id'], { always: false }),
  relation('providers', ['id'], 'reviews', ['provider.id'], { always: false }),
  relation('sources', ['id'], 'reviews', ['source.id'], { always: false }),
  relation('reviews', ['id'], 'review_contents', ['reviewId']),
  relation('review_contents', ['reviewId', 'id'], 'review_sentiments', ['reviewId', 'contentId']),
  relation('review_contents', ['reviewId', 'id'], 'review_liabilities', ['reviewId', 'contentId']),
  relation('categories', ['category', 'subCategory'], 'review_sentiments', ['category', 'subCategory'], {
    always: false,
  }),
  relation('questions', ['questionCode'], 'review_contents', ['questionCode'], { always: false }),
  relation('reviews', ['id'], 'review_tasks', ['reviewId'], { rows: 'one' }),
  relation('reviews', ['id'], 'review_engagements', ['reviewId']),
  relation('entity_ratings', entity, 'comments', entity),
  relation('entity_ratings', entity, 'transparency_reviews', entity),
]

const edge = ({ from, fromAttributes, to, toAttributes, rows, always }: Relation): string => {
  const equal = fromAttributes.map((attribute, index) => `${attribute} = ${toAttributes[index]}`).join(', ')
  return `  ${from} ${always ? '||' : '|o'}--${rows === 'one' ? 'o|' : 'o{'} ${to} : "${equal}"`
}

const box = <Env>({ name, schema, primaryKey, cursor }: Stream<Env>): string => {
  const ends = relations.flatMap(({ to, toAttributes }) => (to === name ? toAttributes : []))
  const starts = relations.flatMap(({ from, fromAttributes }) => (from === name ? fromAttributes : []))
  const cursors = O.isSome(cursor) ? [cursor.value] : []
  const attributes = [...new Set([...primaryKey, ...ends, ...starts, ...cursors])]
  const lines = attributes.map((path) => {
    const [attribute = '', inner] = path.split('.')
    const declared = schemaProperties(schema)[attribute] ?? {}
    const type = declared.format === 'date-time' ? 'timestamp' : schemaTypes(declared).find((one) => one !== 'null')
    const keys = [...(primaryKey.includes(path) ? ['PK'] : []), ...(ends.includes(path) ? ['FK'] : [])].join(', ')
    const remark = inner === undefined ? (cursors.includes(path) ? 'cursor' : '') : `its ${inner}`
    return (
      '    ' +
      [String(type), attribute, keys, remark === '' ? '' : `"${remark}"`].filter((word) => word !== '').join(' ')
    )
  })
  return [`  ${name} {`, ...lines, '  }'].join('\n')
}

/** The streams with their keys, and what leads from one to another, as a Mermaid entity diagram. */
export const entityDiagram = <Env>(streams: ReadonlyArray<Stream<Env>>): string =>
  ['erDiagram', ...streams.map((stream) => box(stream)), ...relations.map(edge)].join('\n')
