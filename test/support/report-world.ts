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
    ...{ reviews: 4_000, years: 1 / 3, locations: 10, providers: 30, until: worldTime, now: () => worldTime },
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
