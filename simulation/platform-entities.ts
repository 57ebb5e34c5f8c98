import type { Row } from './consumer'
import type { Violation } from './oracles'
import { createSourcePlatform, type Platform, type SourceProtocol } from './platform'
import type { Chance } from './random'
import { createScenario, type Scenario } from './scenario'
import { type EntityService, type EntityTraits, entityIds } from './service-entities'

/** A world whose streams are read by entity. */
export type EntityScenario = Scenario & { readonly entities: EntityTraits }

export const entityStreams = ['comments', 'transparency_reviews'] as const

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
    },
    entities: drawTraits(chance, scenario.service),
  }
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
    const { entityType, entityId, comment, response } = data as Readonly<Record<string, unknown>>
    const id = stream === 'comments' ? data.id : data.documentId
    const text = stream === 'comments' ? comment : (comment as { readonly comment: unknown }).comment
    const { responseText = null } = (response ?? {}) as { readonly responseText?: unknown }
    held.set(`${stream} ${entityType} ${entityId} ${id}`, `${text} ${responseText}`)
  }
  const compare = (): ReadonlyArray<Violation> => {
    const wanted = new Map(
      entityStreams.flatMap((stream) =>
        [...service.truth()].map(([key, text]): [string, string] => [`${stream} ${key}`, text]),
      ),
    )
    const violations: Violation[] = []
    for (const [key, text] of wanted)
      if (!held.has(key)) violations.push({ oracle: 'nothing lost', what: key })
      else if (held.get(key) !== text)
        violations.push({ oracle: 'nothing stale', what: `${key}: ${held.get(key)} in place of ${text}` })
    // A deleted row stays at the destination until its stream is refreshed.
    const deleted = new Set([...service.deleted()].flatMap((key) => entityStreams.map((stream) => `${stream} ${key}`)))
    for (const key of held.keys())
      if (!wanted.has(key) && !deleted.has(key)) violations.push({ oracle: 'nothing beyond', what: key })
    return violations.slice(0, 5)
  }
  return createSourcePlatform(scenario, service, source, { keep, compare }, report)
}
