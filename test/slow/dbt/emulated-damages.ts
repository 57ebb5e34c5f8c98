/** A record that the service has. */
export type ServedRecord = Readonly<Record<string, unknown>>
/** A row of an answer, or of a table. */
export type Cells = ReadonlyArray<string | null>

/** A row of feedback; without a time: null. */
export type Feedback = { readonly entity: string; readonly id: string; readonly time: number | null }
type Groups = ReadonlyMap<string, { readonly versions: ReadonlyMap<string, number>; readonly rows: number }>

export const windowOf = ({ entity, time }: Feedback, window: 'month' | 'year'): string =>
  `${entity}/${time === null ? 'none' : new Date(time).toISOString().slice(0, window === 'month' ? 7 : 4)}`

/** The newest time of each row, by entity and window. */
export const groupFeedback = (table: ReadonlyArray<Feedback>, window: 'month' | 'year'): Groups => {
  const newest = new Map<string, Feedback>()
  for (const row of table) {
    const key = `${row.entity} ${row.id}`
    if ((newest.get(key)?.time ?? -2) < (row.time ?? -1)) newest.set(key, row)
  }
  const groups = new Map<string, { versions: Map<string, number>; rows: number }>()
  for (const [key, row] of newest) {
    const group = groups.get(windowOf(row, window)) ?? { versions: new Map(), rows: 0 }
    group.versions.set(key, row.time ?? -1)
    group.rows += table.filter(({ entity, id }) => `${entity} ${id}` === key).length
    groups.set(windowOf(row, window), group)
  }
  return groups
}

/** What the statement about windows must answer. */
export const compareGroups = (expected: Groups, found: Groups): ReadonlyArray<Cells> =>
  [...new Set([...expected.keys(), ...found.keys()])].sort().flatMap((bucket) => {
    const [have, has] = [expected, found].map((groups) => groups.get(bucket) ?? { versions: new Map(), rows: 0 }) as [
      { readonly versions: ReadonlyMap<string, number> },
      { readonly versions: ReadonlyMap<string, number>; readonly rows: number },
    ]
    if (has.versions.size !== have.versions.size)
      return [[bucket, has.versions.size < have.versions.size ? 'missing' : 'extra']]
    const keys = [...have.versions.keys()]
    if (keys.some((key) => !has.versions.has(key))) return [[bucket, 'missing and extra']]
    if (keys.some((key) => has.versions.get(key) !== have.versions.get(key))) return [[bucket, 'stale']]
    return has.rows > has.versions.size ? [[bucket, 'doubled']] : []
  })

/** What the statement about rows must answer. */
export const compareFeedback = (
  expected: ReadonlyArray<Feedback>,
  found: ReadonlyArray<Feedback>,
): ReadonlyArray<Cells> =>
  [...new Set([...expected, ...found].map(({ entity, id }) => `${entity} ${id}`))].sort().flatMap((key) => {
    const [have, has] = [expected, found].map((table) => table.filter(({ entity, id }) => `${entity} ${id}` === key))
    const cells = key.split(' ')
    if (has?.length === 0) return [[...cells, 'missing']]
    if (have?.length === 0) return [[...cells, 'extra']]
    if (has?.every(({ time }) => time !== have?.[0]?.time)) return [[...cells, 'stale']]
    return has?.length === 1 ? [] : [[...cells, 'doubled']]
  })

/** The first and the last millisecond of months, of a leap year's February too. */
const bounds = [
  '2023-12-31T23:59:59.999Z',
  '2024-01-01T00:00:00.000Z',
  '2024-02-29T23:59:59.999Z',
  '2024-03-01T00:00:00.000Z',
]

/** A whole number below a bound. */
type Draw = (below: number) => number
export const feedbackDamages: ReadonlyArray<(row: Feedback, draw: Draw) => ReadonlyArray<Feedback>> = [
  () => [],
  (row) => [row, row],
  (row, draw) => [{ ...row, time: Date.parse(bounds[draw(bounds.length)] ?? '') }],
  (row, draw) => [{ ...row, time: (row.time ?? 0) - 1 - draw(1_000_000) }],
  (row) => [{ ...row, time: null }],
  (row, draw) => [{ ...row, id: String(1 + draw(1_000)) }],
  (row, draw) => [row, { ...row, id: String(1 + draw(1_000)) }],
]

/** A damage to the content of a review: the affected column, if a review can have it, and the damaged review. */
export type ContentDamage = readonly [
  column: string,
  has: (review: ServedRecord) => boolean,
  change: (review: ServedRecord) => ServedRecord,
]

const member = (review: ServedRecord, name: string): ServedRecord => (review[name] ?? {}) as ServedRecord
const listOf = (review: ServedRecord, name: string): ReadonlyArray<unknown> =>
  (review[name] ?? []) as ReadonlyArray<unknown>
export const has = (name: string) => (review: ServedRecord) => review[name] !== undefined && review[name] !== null
const hasMember = (name: string, inner: string) => (review: ServedRecord) => has(inner)(member(review, name))
const set = (review: ServedRecord, name: string, inner: string, value: unknown): ServedRecord => ({
  ...review,
  [name]: { ...member(review, name), [inner]: value },
})

export const contentDamages: ReadonlyArray<ContentDamage> = [
  [
    'mentionTime',
    has('mentionTime'),
    (review) => ({
      ...review,
      mentionTime: new Date(Date.parse(String(review.mentionTime)) + 19_800_000).toISOString(),
    }),
  ],
  [
    'location.name',
    hasMember('location', 'name'),
    (review) => set(review, 'location', 'name', `${member(review, 'location').name}😀`),
  ],
  [
    'contents',
    (review) => listOf(review, 'contents').length > 0,
    (review) => ({ ...review, contents: listOf(review, 'contents').slice(1) }),
  ],
  ['rating', has('rating'), (review) => ({ ...review, rating: Number(review.rating) - 0.25 })],
  ['rating', has('rating'), (review) => ({ ...review, rating: null })],
  ['reviewScore', has('reviewScore'), (review) => ({ ...review, reviewScore: Number(review.reviewScore) + 0.000_002 })],
  ['surveyBarCode', has('surveyBarCode'), (review) => ({ ...review, surveyBarCode: `${review.surveyBarCode} ` })],
  ['surveyBarCode', (review) => !has('surveyBarCode')(review), (review) => ({ ...review, surveyBarCode: '' })],
  [
    'visitRecordId',
    (review) => String(review.visitRecordId ?? '').length > 1,
    (review) => ({ ...review, visitRecordId: String(review.visitRecordId).slice(1) }),
  ],
  ['provider.npi', hasMember('provider', 'npi'), (review) => set(review, 'provider', 'npi', null)],
  ['location.id', hasMember('location', 'id'), (review) => set(review, 'location', 'id', undefined)],
  [
    'taskDetails.status',
    hasMember('taskDetails', 'status'),
    (review) => set(review, 'taskDetails', 'status', 'it\'s \\ "closed"'),
  ],
]
