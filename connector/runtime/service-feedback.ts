import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import { toMillis } from '../api'
import type { ServiceFeedback, ServiceFeedbackRow } from '../audit'
import { type Failure, flatMapFeedEither, getOrThrow, parseExactJson } from '../cdk'
import { nextWindowFrom, readEntityCursors, type SourceEnv, streams } from '../streams'

/** The streams that `feedback audit` compares by entity and window of time. */
export const auditedFeedbackStreams: ReadonlyArray<string> = ['comments', 'transparency_reviews']

/**
 * The time up to which the entities of a feedback stream are compared: one time (milliseconds), or up to where each is
 * read in a state; otherwise now.
 */
type FeedbackCutoff = { readonly cutoff?: number; readonly state?: unknown }

/** What an audit reads of a feedback stream, and, once it is read, the state of that reading. */
export type EntityService = ServiceFeedback & { readonly state: () => unknown }

/**
 * Reads the rows of each entity as the stream does. `onWarning` gets what a run would warn of, such as an entity that
 * the service refuses. Throws for a stream that is not in `auditedFeedbackStreams`.
 */
export const createFeedbackService = (
  source: SourceEnv,
  name: string,
  { cutoff, state }: FeedbackCutoff,
  onWarning: (message: string) => void,
): E.Either<Failure, EntityService> => {
  const stream = streams.find((other) => other.name === name && auditedFeedbackStreams.includes(name))
  if (stream === undefined) throw new Error(`${name} cannot be audited by entity`)
  const [, , key = ''] = stream.primaryKey
  let lastState: () => unknown = () => undefined
  const request = {
    stream: name,
    syncMode: 'full_refresh',
    state: O.none,
    attributes: O.some(new Set([...stream.primaryKey, 'mentionTime'])),
    project: stream.projector(),
  } as const
  const rows = pipe(
    stream.reader.read(source)([request]),
    flatMapFeedEither((event): E.Either<Failure, ReadonlyArray<ReadonlyArray<ServiceFeedbackRow>>> => {
      if (event._tag === 'Failed') return E.left(event.failure)
      if (event._tag === 'Checkpoint') lastState = event.state
      if (event._tag === 'Note' && event.level === 'warn') onWarning(event.message)
      return E.right(event._tag === 'Rows' ? [event.rows.map(({ json }) => readFeedbackRow(json, key))] : [])
    }),
  )
  const limits = readEntityCursors(name, state)
  return pipe(
    limits,
    E.map((wanted) => ({
      stream: name,
      from: nextWindowFrom(O.none, source.startDate, 0),
      rows,
      state: () => lastState(),
      cutoffs: () =>
        new Map(
          [...getOrThrow(readEntityCursors(name, lastState()))].map(([entity, { cursor, isWhole }]) => {
            const limit = state === undefined ? (cutoff ?? cursor) : wanted.get(entity)?.cursor
            return [
              entity,
              cursor === undefined || !isWhole
                ? E.left('the service does not serve it completely')
                : limit === undefined
                  ? E.left('the state has not read it yet')
                  : E.right(Math.min(limit, cursor)),
            ]
          }),
        ),
    })),
  )
}

const readFeedbackRow = (json: Uint8Array, key: string): ServiceFeedbackRow => {
  const record = parseExactJson(Buffer.from(json).toString()) as Readonly<Record<string, unknown>>
  return {
    entity: `${record.entityType}:${record.entityId}`,
    id: String(record[key]),
    time: toMillis(String(record.mentionTime)),
  }
}
