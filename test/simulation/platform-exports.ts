import { createAuditCheck } from './audit-records'
import { createReviewTables } from './consumer'
import { checkHeldRows, createHeldRows, type HeldRows } from './held-rows'
import { checkRepeats, checkRequests, compareRows, findSurplus, restedUntil } from './oracles'
import { createPartTables, familyStreams, partStreams } from './part-tables'
import { createSourcePlatform, type Platform, type SourceProtocol } from './platform'
import type { Scenario } from './scenario'
import type { ExportService } from './service'
import { listSentRows, type SavedState } from './states'

const exportStreams: ReadonlyArray<string> = ['reviews', 'deleted_reviews']

/** The streams that a run of a world of exports reads. */
export const listExportStreams = (scenario: Scenario, run: number): ReadonlyArray<string> =>
  [...listRowStreams(scenario), ...(isAudited(scenario) ? ['sync_audit'] : [])].filter(
    (stream) =>
      !scenario.apart?.some((each) => each.run === run && each.stream === stream && each.stateOf === undefined),
  )

const isAudited = ({ config }: Scenario): boolean => config.audit === true

/** Those that read rows of the service. */
const listRowStreams = ({ service }: Scenario): ReadonlyArray<string> =>
  service.hasParts === true ? [...exportStreams, ...listPartStreams(service)] : exportStreams

export const listPartStreams = ({ hasFamily }: Scenario['service']): ReadonlyArray<string> =>
  hasFamily === true ? familyStreams : partStreams

/**
 * How far the local clock falls behind its value at the start of this run, perhaps before the run's cutoff;
 * milliseconds, at most 0.
 */
const lowestJump = ({ disturbances }: Scenario, run: number): number => {
  let [offset, lowest] = [0, 0]
  for (const each of disturbances)
    if (each.run === run && each.what === 'clock') {
      offset += each.jump
      lowest = Math.min(lowest, offset)
    }
  return lowest
}

/** A platform that reads both exports. */
export const createExportPlatform = (
  scenario: Scenario,
  service: ExportService,
  source: SourceProtocol,
  report: (oracle: string, what: string) => void,
): Platform => {
  const { reviews, deleted, holds, keep } = createReviewTables()
  const parts = createPartTables(listPartStreams(scenario.service))
  /** Up to when the run before has read, if it was quiet too and nothing went wrong there. */
  let readUntil: number | undefined
  let held: HeldRows = createHeldRows()
  let audit = createAuditCheck(report)
  const { max_concurrency: concurrency } = scenario.config.rate_limit as { readonly max_concurrency: number }
  const toKey = (id: unknown, modified: number): string => `${id} ${modified}`
  service.onPage((rows) => held.serve(rows.map(({ id, modified, text }) => [toKey(id, modified), text.length])))
  return createSourcePlatform(
    scenario,
    service,
    source,
    {
      keep: (row) => (exportStreams.includes(row.stream) ? keep(row) : parts.keep(row)),
      noteRow: (row) => {
        const { stream, data } = row
        if (isAudited(scenario)) audit.take(row)
        if (exportStreams.includes(stream)) held.print(toKey(data.id, Date.parse(String(data.modifiedTime))))
      },
      noteState: (stream, state) => {
        if (!exportStreams.includes(stream)) return
        for (const [id, modified, why] of listSentRows(state as SavedState))
          if (!holds(stream, id, modified)) report('no state ahead', `${stream} lacks ${id} of ${modified}, ${why}`)
      },
      open: ({ index, isQuiet, now, localOffset }) => {
        held = createHeldRows()
        audit = createAuditCheck(report)
        const falseEnds = service.falseEnds()
        const rested = restedUntil(scenario.service, now, localOffset + lowestJump(scenario, index))
        return ({ status, isOutputClosed, requests, records }) => {
          const isOfReviews = listExportStreams(scenario, index).includes('reviews')
          const isComplete = status === 0 && !isOutputClosed && isOfReviews && service.falseEnds() === falseEnds
          const readBefore = readUntil
          readUntil = isComplete && isQuiet ? rested : undefined
          if (status === 0 && !isOutputClosed && isAudited(scenario)) audit.end(listRowStreams(scenario))
          return [
            ...checkHeldRows(held, concurrency),
            ...(isQuiet ? checkRequests(scenario.service, requests) : []),
            // After a first run, tombstones begin at the newest review, so some come once more.
            ...(isQuiet && readBefore !== undefined && scenario.config.deletes !== 'tombstones'
              ? checkRepeats(service.truth(Number.POSITIVE_INFINITY), readBefore, records - audit.count())
              : []),
            ...(isComplete ? compareRows(service.truth(rested), reviews, deleted) : []),
          ]
        }
      },
      compare: (now) => [
        ...compareRows(service.truth(now), reviews, deleted),
        ...findSurplus(service.truth(Number.POSITIVE_INFINITY), reviews),
        ...(scenario.service.hasParts === true ? parts.compare(service.newest(now)) : []),
      ],
    },
    report,
  )
}
