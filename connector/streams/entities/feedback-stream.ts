import type * as t from 'io-ts'
import type { Row } from '../../cdk/message'
import { defineStream, type Stream } from '../../cdk/stream'
import type { ResourceName, SourceEnv } from '../source'
import type { FeedbackOperation } from './listing'
import { createFeedbackReader } from './reader'
import { createRecordBuilder } from './records'

/** Under whom it was found, and when it was said. */
type EntityRecord = { readonly entityType: unknown; readonly entityId: unknown; readonly mentionTime: unknown }

/** A stream of what an operation lists under entities; `key` tells the rows of one apart, `list` is what they are called in messages. */
export const createFeedbackStream = <A extends EntityRecord>({
  name,
  list,
  codec,
  key,
  operation,
}: {
  readonly name: ResourceName
  readonly list: string
  readonly codec: t.Type<A, unknown>
  readonly key: keyof A & string
  readonly operation: Omit<FeedbackOperation, 'key'>
}): Stream<SourceEnv> =>
  defineStream({
    name,
    codec,
    primaryKey: ['entityType', 'entityId', key],
    cursor: 'mentionTime',
    reader: createFeedbackReader({
      ...operation,
      key,
      records: createRecordBuilder({
        resource: name,
        name: operation.name,
        list,
        codec,
        primaryKey: key,
        cursor: 'mentionTime',
      }),
    }),
    project: (row: Row) => [row],
  })
