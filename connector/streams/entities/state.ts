import { createHash } from 'node:crypto'
import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as t from 'io-ts'
import { Instant, toInstant, toMillis } from '../../api/model/scalar'
import { configFailure, type Failure } from '../../cdk/failure'
import { decode } from '../../cdk/json'

/** Where one entity stands: its own cursor where it is not the stream's, and what its next window will serve again. */
const Partition = t.partial({ fromDate: Instant, digest: t.string, seen: t.boolean })
type Partition = t.TypeOf<typeof Partition>

/** State of a transparency stream (design.md, State). `reviews`: where the reviews stood that entities were found in. */
const Written = t.intersection([
  t.type({ fromDate: Instant }),
  t.partial({ partitions: t.record(t.string, Partition), reviews: t.unknown }),
])

export type EntityState = {
  readonly fromDate: O.Option<string>
  readonly partitions: Readonly<Record<string, Partition>>
  readonly reviews: unknown
}

export const noState: EntityState = { fromDate: O.none, partitions: {}, reviews: undefined }

/** Reads a stream's state; a failure names the stream and the key path. */
export const readState = (stream: string, state: O.Option<unknown>): E.Either<Failure, EntityState> =>
  O.isNone(state)
    ? E.right(noState)
    : pipe(
        decode(Written, state.value),
        E.bimap(
          (wrong) =>
            configFailure(
              `The state of ${stream} is wrong: ${wrong.map(({ path, problem }) => `${path || 'it'} ${problem}`).join('; ')}. Give the state as it was printed, or none to read everything.`,
            ),
          ({ fromDate, partitions = {}, reviews }) => ({ fromDate: O.some(fromDate), partitions, reviews }),
        ),
      )

/** The cursor of a partition in milliseconds; none if it has never been read. */
export const cursorOf = ({ fromDate, partitions }: EntityState, key: string): O.Option<number> => {
  const partition = partitions[key]
  if (partition?.digest === undefined) return O.none
  return partition.fromDate === undefined ? O.map(toMillis)(fromDate) : O.some(toMillis(partition.fromDate))
}

/** The state as it is printed; `fromDate` in milliseconds: the cursor of every partition that has none of its own. */
export const writeState = (
  fromDate: number,
  partitions: Readonly<Record<string, Partition>>,
  reviews: unknown,
): t.TypeOf<typeof Written> => {
  const stream = toInstant(fromDate)
  const own = ({ fromDate: at, ...rest }: Partition): Partition =>
    at === undefined || at === stream ? rest : { ...rest, fromDate: at }
  return {
    fromDate: stream,
    partitions: Object.fromEntries(Object.entries(partitions).map(([key, partition]) => [key, own(partition)])),
    ...(reviews === undefined ? {} : { reviews }),
  }
}

/** 64 bits and a little of what rows were, whatever their order. */
export const digestOf = (rows: ReadonlyMap<string, string>): string =>
  createHash('sha256')
    .update(
      [...rows]
        .map(([id, hash]) => `${id} ${hash}`)
        .sort()
        .join('\n'),
    )
    .digest('base64url')
    .slice(0, 11)

export const hashOf = (text: Uint8Array): string => createHash('sha256').update(text).digest('base64url').slice(0, 11)
