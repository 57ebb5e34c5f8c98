import * as E from 'fp-ts/Either'
import { consumeMessages } from '../../connector/cdk/source-program'
import { sourceFormat } from '../../connector/config/source'
import { createSource } from '../../connector/runtime/source'
import { createSnapshotWriter } from '../../connector/snapshot/load/writer'
import type { Snapshot } from '../../connector/snapshot/store/database'
import { setReportingTimeZone } from '../../connector/snapshot/store/views'
import { createTestIo, toInput } from './command-io'
import { type ServiceContent, startReviewService } from './review-service'
import { openSnapshotFile } from './snapshot-messages'

const createReader = (url: string) => {
  const decoded = sourceFormat.decode({
    base_url: url,
    credentials: { auth_type: 'access_token', access_token: 'token' },
    start_date: '1970-01-01T00:00:00Z',
  })
  const source = E.isLeft(decoded) ? decoded : createSource(decoded.right.config, { proxyVariables: {} })
  if (E.isLeft(source)) throw new Error(source.left.message)
  return source.right
}

/** A snapshot with its history after one read of each of these contents, as `feedback sync` loads them. */
export const loadReviews = async (
  reads: ReadonlyArray<ServiceContent>,
  timeZone: string,
  path = ':memory:',
): Promise<Snapshot> => {
  let close = (): void => undefined
  const service = await startReviewService((end) => {
    close = end
  })
  const snapshot = await openSnapshotFile(path)
  try {
    for (const content of reads) {
      service.serve(content)
      const source = createReader(service.url)
      const catalog = ['reviews', 'deleted_reviews'].map((name) => ({
        name,
        syncMode: 'incremental' as const,
        attributes: { _tag: 'None' as const },
      }))
      const writer = await createSnapshotWriter(snapshot, { now: Date.now, history: true })
      const problems: string[] = []
      const io = createTestIo(toInput(''), async () => undefined)
      // Without the states of the read before: the service's changes are older than it.
      await consumeMessages(io, source, { catalog, state: {} }, [
        writer.write,
        async (message) => {
          if (message._tag === 'Failed') problems.push(message.failure.message)
        },
      ])
      await writer.finish()
      await source.close()
      if (problems.length > 0) throw new Error(problems.join('\n'))
    }
    await setReportingTimeZone(snapshot, timeZone)
    return snapshot
  } finally {
    close()
  }
}
