import type { ServiceFeedback, ServiceVersions } from '../audit'
import { type CommandIo, type Failure, type Feed, flatMapFeed } from '../cdk'
import { readForgotten } from '../snapshot'
import { useSnapshot } from './snapshot-file'

export const forgottenOption = {
  type: 'string',
  value: 'PLACE',
  help:
    'The DuckDB file or lake (ducklake:…) where feedback forget erased reviews: the table should lack them, ' +
    'although the service has them',
} as const

/** Excludes rows that were forgotten in a file from what an audit reads of the service, and reports how many. */
export const withoutForgotten = async (io: CommandIo, path: string | undefined) => {
  if (path === undefined)
    return { versions: (service: ServiceVersions) => service, feedback: (service: ServiceFeedback) => service }
  const { isReview, isComment } = await useSnapshot(path, 'read', readForgotten, { lake: { env: io.env } })
  const keepRows = <Row>(rows: ReadonlyArray<Row>, isForgotten: (row: Row) => boolean, count: { left: number }) => {
    const kept = rows.filter((row) => !isForgotten(row))
    count.left += rows.length - kept.length
    return kept
  }
  /** Warns once the feed has ended. */
  async function* reportAtEnd<A>(feed: Feed<Failure, A>, count: { readonly left: number }): Feed<Failure, A> {
    yield* feed
    if (count.left > 0)
      io.printWarning(
        `${count.left.toLocaleString('en')} of the rows that the service ` +
          'has were forgotten on purpose: they must not be in the table.',
      )
  }
  return {
    versions: (service: ServiceVersions): ServiceVersions => {
      const count = { left: 0 }
      const versions = flatMapFeed(({ rows, ...item }: VersionItem) => [
        { ...item, rows: keepRows(rows, ({ id }) => isReview(id), count) },
      ])(service.versions)
      return { ...service, versions: reportAtEnd(versions, count) }
    },
    feedback: (service: ServiceFeedback): ServiceFeedback => {
      const count = { left: 0 }
      const isForgotten = ({ id, time }: FeedbackRow) =>
        service.stream === 'comments' ? isComment(id, time) : isReview(id)
      return {
        ...service,
        rows: reportAtEnd(
          flatMapFeed((rows: ReadonlyArray<FeedbackRow>) => [keepRows(rows, isForgotten, count)])(service.rows),
          count,
        ),
      }
    },
  }
}

type ItemOf<F> = F extends Feed<Failure, infer A> ? A : never
type VersionItem = ItemOf<ServiceVersions['versions']>
type FeedbackRow = ItemOf<ServiceFeedback['rows']>[number]
