import type * as t from 'io-ts'
import type { Row } from '../../cdk/message'
import { type Stream, stream } from '../../cdk/stream'
import type { Resource, Source } from '../source'
import type { Operation } from './listing'
import { feedbackReader } from './reader'
import { recordsOf } from './records'

/** Under whom it was found, and when it was said. */
type OfSomeone = { readonly entityType: unknown; readonly entityId: unknown; readonly mentionTime: unknown }

/** A stream of what an operation lists under entities; `key` tells the rows of one apart, `list` is what they are called in messages. */
export const feedbackStream = <A extends OfSomeone>({
  name,
  list,
  codec,
  key,
  operation,
}: {
  readonly name: Resource
  readonly list: string
  readonly codec: t.Type<A, unknown>
  readonly key: keyof A & string
  readonly operation: Omit<Operation, 'key'>
}): Stream<Source> =>
  stream({
    name,
    codec,
    primaryKey: ['entityType', 'entityId', key],
    cursor: 'mentionTime',
    reader: feedbackReader({
      ...operation,
      key,
      records: recordsOf({ resource: name, name: operation.name, list, codec, key, cursor: 'mentionTime' }),
    }),
    project: (row: Row) => [row],
  })
