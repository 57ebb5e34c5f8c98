import type { Row } from './consumer'
import type { Violation } from './oracles'
import { createSourcePlatform, type Platform, type SourceProtocol } from './platform'
import type { Chance } from './random'
import { createScenario, type Scenario } from './scenario'
import { type EntityService, type EntityTraits, entityIds } from './service-entities'
import type { ListTraits, ListWatch } from './service-lists'

/** A world whose streams are read by entity. */
export type EntityScenario = Scenario & { readonly entities: EntityTraits }

const rowStreams = ['comments', 'transparency_reviews'] as const

/** The streams that are read as a whole in each run. */
const wholeStreams = ['entity_ratings', 'managed_locations'] as const

/** The streams that a world by entity reads. */
export const listEntityStreams = ({ entities: { list } }: EntityScenario): ReadonlyArray<string> =>
  list === undefined ? rowStreams : [...rowStreams, ...wholeStreams]

const drawList = (chance: Chance, churn: number): ListTraits => ({
  locations: chance.pick([0, 3, 12, 40]),
  clamp: chance.pick([4, 10, 100]),
  totals: chance.pick(['applied', 'requested', 'none']),
  refusesEnd: chance.happens(0.3),
  churn,
})

const drawTraits = (chance: Chance, { churn, lag }: Pick<EntityTraits, 'churn' | 'lag'>): EntityTraits => ({
  clamp: chance.pick([4, 10, 15, 100]),
  echo: chance.pick(['applied', 'requested', 'none']),
  paging: chance.pick(['entity', 'answer']),
  totals: chance.pick(['right', 'zero', 'huge', 'none']),
  bounds: { from: chance.happens(0.5), to: chance.happens(0.5) },
  order: chance.pick(['newest', 'oldest', 'scattered']),
  maxIdentifiers: chance.pick([1, 2, 50]),
  hasOwnIds: chance.happens(0.3),
  rows: chance.pick([5, 40]),
  burst: chance.pick([0, 0, 0, 12]),
  churn,
  lag,
  deletions: chance.pick([0, 0, 0.1, 0.5]),
})

export const createEntityScenario = (seed: number, chance: Chance): EntityScenario => {
  const scenario = createScenario(seed)
  const listing = chance.split('list')
  const list = listing.happens(0.5) ? { list: drawList(listing, scenario.service.churn) } : {}
  return {
    ...scenario,
    config: {
      ...scenario.config,
      entities: {
        person_ids: entityIds.person,
        location_ids: entityIds.location,
        entity_ids: entityIds.entity,
      },
      feedback_filters: { per_page: chance.pick([20, 100]) },
      ...('list' in list ? { lookups: { locations: true } } : {}),
    },
    entities: { ...drawTraits(chance, scenario.service), ...list },
  }
}

/** What a run has sent of the streams that it reads as a whole, compared with what the service showed meanwhile. */
const checkWhole = (
  rows: ReadonlyArray<Row>,
  list: ListWatch,
  told: ReadonlyMap<string, ReadonlySet<number>>,
): ReadonlyArray<Violation> => {
  const violations: Violation[] = []
  const dataOf = (stream: string): ReadonlyArray<Row['data']> =>
    rows.filter((row) => row.stream === stream).map(({ data }) => data)
  const broken = (oracle: string, what: string): void => void violations.push({ oracle, what })
  const checkOnce = (stream: string, keys: ReadonlyArray<string>): void => {
    for (const key of keys)
      if (keys.indexOf(key) !== keys.lastIndexOf(key)) broken('nothing doubled', `${stream} ${key}`)
  }
  const locations = dataOf('managed_locations')
  checkOnce(
    'managed_locations',
    locations.map(({ code, codeType }) => `${code} ${codeType}`),
  )
  const ids = locations.map(({ id }) => Number(id))
  checkOnce('managed_locations', ids.map(String))
  for (const id of list.stayed()) if (!ids.includes(id)) broken('nothing lost', `managed_locations ${id}`)
  for (const { id, displayName } of locations)
    if (list.names.get(Number(id))?.has(String(displayName)) !== true)
      broken('nothing beyond', `managed_locations ${id} ${displayName}`)
  const ratings = dataOf('entity_ratings')
  const keys = ratings.map(({ entityType, entityId }) => `${entityType} ${entityId}`)
  checkOnce('entity_ratings', keys)
  for (const [kind, own] of Object.entries(entityIds))
    for (const id of own) if (!keys.includes(`${kind} ${id}`)) broken('nothing lost', `entity_ratings ${kind} ${id}`)
  for (const [i, { totalCommentCount: count }] of ratings.entries())
    if (told.get(keys[i] ?? '')?.has(Number(count)) !== true)
      broken('nothing stale', `entity_ratings ${keys[i]}: ${count}`)
  return violations.slice(0, 5)
}

/** A platform that reads the feedback on entities. */
export const createEntityPlatform = (
  scenario: EntityScenario,
  service: EntityService,
  source: SourceProtocol,
  report: (oracle: string, what: string) => void,
): Platform => {
  const held = new Map<string, string>()
  const keep = ({ stream, data }: Row): void => {
    if (!rowStreams.some((name) => name === stream)) return
    const { entityType, entityId, comment, response } = data as Readonly<Record<string, unknown>>
    const id = stream === 'comments' ? data.id : data.documentId
    const text = stream === 'comments' ? comment : (comment as { readonly comment: unknown }).comment
    const { responseText = null } = (response ?? {}) as { readonly responseText?: unknown }
    held.set(`${stream} ${entityType} ${entityId} ${id}`, `${text} ${responseText}`)
  }
  const compare = (): ReadonlyArray<Violation> => {
    const wanted = new Map(
      rowStreams.flatMap((stream) =>
        [...service.truth()].map(([key, text]): [string, string] => [`${stream} ${key}`, text]),
      ),
    )
    const violations: Violation[] = []
    for (const [key, text] of wanted)
      if (!held.has(key)) violations.push({ oracle: 'nothing lost', what: key })
      else if (held.get(key) !== text)
        violations.push({ oracle: 'nothing stale', what: `${key}: ${held.get(key)} in place of ${text}` })
    // A deleted row stays at the destination until its stream is refreshed.
    const deleted = new Set([...service.deleted()].flatMap((key) => rowStreams.map((stream) => `${stream} ${key}`)))
    for (const key of held.keys())
      if (!wanted.has(key) && !deleted.has(key)) violations.push({ oracle: 'nothing beyond', what: key })
    return violations.slice(0, 5)
  }
  let whole: Row[] = []
  return createSourcePlatform(
    scenario,
    service,
    source,
    {
      keep,
      compare,
      noteRow: (row) => void whole.push(row),
      open: () => {
        whole = []
        service.takeTold()
        const list = service.watchList()
        return ({ status, isOutputClosed }) =>
          list === undefined || status !== 0 || isOutputClosed ? [] : checkWhole(whole, list, service.takeTold())
      },
    },
    report,
  )
}
