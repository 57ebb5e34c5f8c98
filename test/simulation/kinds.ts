import type { SimulatedDuckDb } from './duckdb'
import type { SimulatedDisk } from './file-disk'
import type { Platform } from './platform'
import { createEntityPlatform, createEntityScenario, type EntityScenario, listEntityStreams } from './platform-entities'
import { createExportPlatform, listExportStreams, listPartStreams } from './platform-exports'
import { createSnapshotPlatform } from './platform-snapshot'
import { createDestinationPlatform } from './platform-writing'
import { type Chance, createChance } from './random'
import type { Realm } from './realm'
import { createScenario, drawApart, lengthenRows, quietRuns, type Scenario, shortenList } from './scenario'
import { createSnapshotScenario, type SnapshotScenario } from './scenario-snapshot'
import { createWritingScenario, type WritingScenario } from './scenario-writing'
import { createService } from './service'
import { createEntityService } from './service-entities'
import type { OpenSnapshot } from './snapshot'

/** A world of one of the kinds; the seed decides which. */
export const drawScenario = (seed: number): Scenario => {
  const draw = createChance(seed).split
  const [writing, snapshot, entities, parts] = [draw('writing'), draw('snapshot'), draw('entities'), draw('parts')]
  if (writing.happens(0.25)) return createWritingScenario(seed, writing)
  if (snapshot.happens(0.15)) return createSnapshotScenario(seed, snapshot)
  if (entities.happens(0.15)) return createEntityScenario(seed, entities)
  const audit = draw('audit').happens(0.15) ? { audit: true } : {}
  const [world, list, rows] = [createScenario(seed), draw('short list'), draw('long rows')]
  const drawn = { ...world, config: { ...world.config, ...audit } }
  if (list.happens(0.05)) return shortenList(drawn, list)
  // Without order, an export is read in many windows: such rows would take too long.
  const scenario = drawn.service.order !== 'random' && rows.happens(0.05) ? lengthenRows(drawn, rows) : drawn
  if (!parts.happens(0.2)) return scenario
  const family = parts.split('family').happens(0.4) ? { hasFamily: true } : {}
  const withParts = { ...scenario, service: { ...scenario.service, hasParts: true, ...family } }
  const apart = draw('apart')
  // What a run reports about itself is compared only if it reads all streams.
  if ('audit' in audit || !apart.happens(0.6)) return withParts
  const streams = ['reviews', ...listPartStreams(withParts.service)]
  return { ...withParts, apart: drawApart(apart, scenario.pauses.length - quietRuns, streams) }
}

const isWriting = (scenario: Scenario): scenario is WritingScenario => 'writing' in scenario
const isSnapshot = (scenario: Scenario): scenario is SnapshotScenario => 'snapshot' in scenario
const isByEntity = (scenario: Scenario): scenario is EntityScenario => 'entities' in scenario

export const kinds = ['exports', 'parts', 'entities', 'snapshot', 'writing'] as const

/** What a world is about. */
export const kindOf = (scenario: Scenario): (typeof kinds)[number] =>
  kinds.find((kind) => kind in scenario) ?? (scenario.service.hasParts === true ? 'parts' : 'exports')

/** What a platform is made with. */
export type PlatformTools = {
  readonly realm: Realm
  readonly chance: Chance
  readonly duckDb: SimulatedDuckDb
  readonly disk: SimulatedDisk
  readonly openSnapshot: OpenSnapshot
  /** The catalog of these streams, as a platform gives it. */
  readonly describeCatalog: Readonly<Record<'airbyte' | 'singer', (streams: ReadonlyArray<string>) => unknown>>
}

/** The platform of a scenario, with its service. */
export const createPlatform = (
  scenario: Scenario,
  protocol: 'airbyte' | 'singer' | 'text',
  { realm, chance, disk, describeCatalog, ...duckDb }: PlatformTools,
  report: (oracle: string, what: string) => void,
): Platform => {
  const drawing = chance.split('service')
  if (isSnapshot(scenario)) {
    const service = createService(scenario.service, realm.wall, drawing)
    return createSnapshotPlatform(scenario, service, { ...duckDb, chance }, report)
  }
  if (protocol === 'text') throw new Error(`There is no world of ${scenario.program} without a file.`)
  if (isWriting(scenario)) return createDestinationPlatform(scenario, protocol, { realm, chance, disk }, report)
  if (isByEntity(scenario)) {
    const service = createEntityService(scenario.service, scenario.entities, realm.wall, drawing)
    const source = { protocol, catalog: () => describeCatalog[protocol](listEntityStreams(scenario)) }
    return createEntityPlatform(scenario, service, source, report)
  }
  const service = createService(scenario.service, realm.wall, drawing)
  const catalog = (run: number) => describeCatalog[protocol](listExportStreams(scenario, run))
  const source = { protocol, catalog }
  return createExportPlatform(scenario, service, source, report)
}
