import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as TE from 'fp-ts/TaskEither'
import { describeApplicationError, type LookupList, type LookupListError, type LookupRecord, outageKind } from '../api'
import {
  chainEffect,
  concatFeed,
  encodeRow,
  type Failure,
  feedOf,
  type JsonSchema,
  type Reader,
  type ReaderEvent,
  type Row,
} from '../cdk'
import { isKeyValue, type LookupListSettings, lookupEvents, readLookupRecords, toLookupFailure } from './lookups'
import type { SourceEnv } from './source-env'
import { warningEvent } from './warnings'

/** The schema of `sources` if they are looked up as published: what reviews say about them, and the whole record. */
export const addLookedUpRecord = (schema: JsonSchema): JsonSchema => {
  const properties = schema.properties as Readonly<Record<string, JsonSchema>>
  const { reviewModifiedTime: time } = properties
  return {
    ...schema,
    properties: {
      ...properties,
      reviewModifiedTime: { ...time, description: `${time?.description}, or the time of the lookup` },
      record: {
        type: ['null', 'object'],
        additionalProperties: true,
        description: 'The other attributes of a source that was looked up',
      },
    },
  }
}

/** Why sources are read from the reviews instead. A Left is a failure of the stream. */
const explainRefusal = (refused: LookupListError): E.Either<Failure, string> => {
  const failure = toLookupFailure('sources', refused)
  if (refused._tag === 'Answer') return failure._tag === 'Config' ? E.right(failure.message) : E.left(failure)
  const { error } = refused
  switch (error._tag) {
    case 'Http':
      return [400, 401, 403, 404, 405, 410, 501].includes(error.status)
        ? E.right(`the service answered ${error.status}.`)
        : E.left(failure)
    case 'Application':
      return outageKind(error) === undefined ? E.right(`${describeApplicationError(error)}.`) : E.left(failure)
    case 'Decode':
      return E.right(`the answer is not a list (at ${error.path}).`)
    default:
      return E.left(failure)
  }
}

const isDigits = (value: unknown): value is string => typeof value === 'string' && /^\d{1,18}$/.test(value)

/** The id of a source, an integer, in the records of a lookup and in reviews. */
const sourceIdOf = ({ id }: LookupRecord): number | bigint | undefined =>
  isDigits(id) ? BigInt(id) : typeof id === 'bigint' || Number.isSafeInteger(id) ? (id as number | bigint) : undefined

const toSourceRows = (
  records: ReadonlyArray<LookupRecord>,
  reviewModifiedTime: string,
): E.Either<string, ReadonlyArray<Row>> => {
  if (records.length === 0) return E.left('the list is empty.')
  const ids = records.map(sourceIdOf)
  if (ids.includes(undefined)) return E.left(`record ${ids.indexOf(undefined) + 1} has no id that is an integer.`)
  if (new Set(ids.map(String)).size < ids.length) return E.left('two different records have the same id.')
  return E.right(
    records.map(({ id: _id, ...record }, index) => {
      const { name, ...rest } = record
      const isText = typeof name === 'string'
      return encodeRow({
        id: ids[index],
        name: isText ? name : null,
        reviewModifiedTime,
        record: isText ? rest : record,
      })
    }),
  )
}

type SourceOutcome = E.Either<string, { readonly list: LookupList; readonly rows: ReadonlyArray<Row> }>

/**
 * The rows of a lookup of sources, or why they are read from the reviews instead. A Left is a failure of the stream.
 */
const lookUpSources = (source: SourceEnv, settings: LookupListSettings): TE.TaskEither<Failure, SourceOutcome> => {
  const isHidden = Object.keys(source.actions.export ?? {}).some((path) => /^source(\.|$)/.test(path))
  if (isHidden) return TE.right(E.left('privacy hides attributes of sources that only reviews have.'))
  return pipe(
    readLookupRecords(source, 'sources', settings, ({ id }) => (isKeyValue(id) ? String(id) : undefined)),
    TE.matchE(
      (refused) => TE.fromEither(E.map((reason: string) => E.left(reason))(explainRefusal(refused))),
      (list) =>
        TE.right(
          pipe(
            toSourceRows(list.records, new Date(source.now()).toISOString()),
            E.map((rows) => ({ list, rows })),
          ),
        ),
    ),
  )
}

const derivedWarning = (reason: string): string =>
  `lookups.sources: ${reason} Sources are read from the reviews ` +
  'instead. Set lookups.sources to false, or name another path.'

/** Checks the published lookup of sources. Resolves to a warning if the reviews replace it. */
export const checkSourceLookup = (source: SourceEnv): TE.TaskEither<Failure, ReadonlyArray<string>> =>
  source.sourceLookup === undefined
    ? TE.right([])
    : pipe(
        lookUpSources(source, source.sourceLookup),
        TE.map(
          E.match(
            (reason) => [derivedWarning(reason)],
            () => [],
          ),
        ),
      )

/**
 * Reads `sources` from the published lookup if configured, and all other streams with `reader`. If the service refuses
 * the lookup, `reader` reads them too, so that they share its requests.
 */
export const withSourceLookup = <Item>(reader: Reader<SourceEnv, Item>): Reader<SourceEnv, Item> => ({
  name: reader.name,
  read: (source) => (requests) => {
    const { sourceLookup, ...withoutLookup } = source
    const request = requests.find(({ stream }) => stream === 'sources')
    if (sourceLookup === undefined || request === undefined) return reader.read(source)(requests)
    const others = requests.filter((other) => other !== request)
    const readOthers = () => (others.length === 0 ? feedOf<Failure, ReaderEvent>() : reader.read(withoutLookup)(others))
    const lookUp = TE.fromTask<E.Either<Failure, SourceOutcome>, Failure>(lookUpSources(source, sourceLookup))
    return chainEffect(lookUp, (outcome) => {
      if (E.isLeft(outcome)) {
        const failed: ReaderEvent = { _tag: 'Failed', stream: request.stream, failure: outcome.left }
        return concatFeed(readOthers)(feedOf<Failure, ReaderEvent>(E.right(failed)))
      }
      return E.isLeft(outcome.right)
        ? concatFeed(() => reader.read(withoutLookup)(requests))(
            feedOf<Failure, ReaderEvent>(E.right(warningEvent(derivedWarning(outcome.right.left)))),
          )
        : concatFeed(readOthers)(lookupEvents(source, request, outcome.right.right.list, outcome.right.right.rows))
    })
  },
})
