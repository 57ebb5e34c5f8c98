import { expect } from 'vitest'
import { listMarkedChanges } from '../../connector/report/changes'
import { readReport } from '../../connector/report/report'
import { plantedChanges } from '../../connector/sandbox/data/trend'
import { type SandboxOptions, startSandbox } from '../../connector/sandbox/start'
import type { Snapshot } from '../../connector/snapshot/store/database'
import { reviewsStream } from '../../connector/streams/reviews'
import { openMemorySnapshot, streamMessages, writeMessages } from './snapshot-messages'

/** The reviews were read then: February was over for 25 days. */
export const worldTime = Date.parse('2026-03-25T12:00:00Z')

/** A closed task as it came first: open, and not modified since its mention. */
const reopen = (json: string): string => {
  const mention = /"mentionTime":("[^"]*")/.exec(json)?.[1] ?? '""'
  return json
    .replace(/"modifiedTime":"[^"]*"/, `"modifiedTime":${mention}`)
    .replace('"status":"completed"', '"status":"pending"')
}

/** The texts of a sandbox's reviews, with the one name that the source gives to answers, and a snapshot of them that
 * has known every task since it was open. */
export const loadWorld = async (
  options: SandboxOptions,
): Promise<{
  readonly snapshot: Snapshot
  readonly texts: ReadonlyArray<string>
  readonly earlier: ReadonlyArray<string>
}> => {
  const sandbox = await startSandbox({
    ...{ reviews: 3_000, years: 1 / 4, locations: 10, providers: 30, until: worldTime, now: () => worldTime },
    ...options,
  })
  try {
    const texts = (await sandbox.truth()).reviews.map(({ json }) => json.replace('"engagement":[', '"engagements":['))
    const earlier = texts.filter((text) => text.includes('"status":"completed"')).map(reopen)
    const snapshot = await openMemorySnapshot()
    const stream = { ...reviewsStream, syncMode: 'incremental' } as const
    for (const batch of [earlier, texts])
      await writeMessages(snapshot, streamMessages(stream, ...batch), { history: true, now: () => worldTime })
    return { snapshot, texts, earlier }
  } finally {
    await sandbox.close()
  }
}

/** How many changes the report of a service without any trend marks; fails if it judges next to none. */
export const countMarks = async (seed: number): Promise<number> => {
  const { snapshot } = await loadWorld({ seed, trend: 'none' })
  try {
    const report = await readReport(snapshot, { now: worldTime })
    expect(report.judgement.compared).toBeGreaterThan(100)
    return listMarkedChanges(report).length
  } finally {
    snapshot.db.close()
  }
}

/** Fails unless the report of a service with planted changes marks each of them, in its section. */
export const expectPlanted = async (seed: number): Promise<void> => {
  const { snapshot } = await loadWorld({ seed, trend: 'planted' })
  try {
    const report = await readReport(snapshot, { now: worldTime })
    const markOf = (section: 'locations' | 'sources', key: number, metric: string) =>
      report[section].find((group) => group.key === String(key))?.figures[metric]?.test?.mark
    const { worseLocation, betterLocation, lateClosings, lateAnswers } = plantedChanges
    expect({
      seed,
      worseRating: markOf('locations', worseLocation, 'average_rating'),
      worseWords: markOf('locations', worseLocation, 'share_negative'),
      betterRating: markOf('locations', betterLocation, 'average_rating'),
      betterWords: markOf('locations', betterLocation, 'share_negative'),
      answers: markOf('sources', lateAnswers, 'share_answered_7'),
      closings: markOf('sources', lateClosings, 'share_closed_7'),
    }).toEqual({
      seed,
      ...{ worseRating: 'worse', worseWords: 'worse', betterRating: 'better', betterWords: 'better' },
      ...{ answers: 'worse', closings: 'worse' },
    })
  } finally {
    snapshot.db.close()
  }
}
