import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as TE from 'fp-ts/TaskEither'
import * as t from 'io-ts'
import {
  describeAttribute,
  type LookupRecord,
  ManagedLocation,
  publishedLocationOrder,
  publishedLocationPaging,
  readLookupList,
  toFailure,
} from '../api'
import {
  chainEffect,
  concatFeed,
  configFailure,
  defined,
  defineStream,
  type Failure,
  feedOf,
  printExactJson,
  type Reader,
  type ReaderEvent,
  type Row,
  type Stream,
} from '../cdk'
import { createCutter } from '../export'
import { type LookupListSettings, lookupEvents, toLookupFailure } from './lookups'
import type { SourceEnv } from './source-env'
import { collectUnknownAttributes, UnknownAttributes } from './unknown-attributes'
import { warningEvent } from './warnings'

/**
 * A record of `managed_locations`. Both attributes always have a text, because null or an empty text would not be a
 * key.
 */
export const ManagedLocationRecord = t.intersection(
  [
    t.type({
      code: describeAttribute('Code of the location; its id if it has none')(t.string),
      codeType: describeAttribute('Type of the code; none if it has none, id if the code is the id')(t.string),
    }),
    ManagedLocation,
    UnknownAttributes,
  ],
  'ManagedLocationRecord',
)

type LocationKeyColumns = { readonly code: string; readonly codeType: string }

const toText = (value: unknown): string => (value === undefined || value === null ? '' : String(value).trim())

const codeKeyOf = ({ code, codeType }: LookupRecord): LocationKeyColumns | undefined =>
  toText(code) === '' ? undefined : { code: toText(code), codeType: toText(codeType) || 'none' }

const idKeyOf = ({ id }: LookupRecord): LocationKeyColumns | undefined =>
  toText(id) === '' ? undefined : { code: toText(id), codeType: 'id' }

const formatKey = ({ code, codeType }: LocationKeyColumns): string => JSON.stringify([code, codeType])

/**
 * Records with their keys. One without a code, or with the code and type of another, gets its id as code, so that none
 * is lost.
 */
const assignKeys = (
  records: ReadonlyArray<LookupRecord>,
): E.Either<Failure, { readonly keys: ReadonlyArray<LocationKeyColumns>; readonly shared: number }> => {
  const owners = new Map<string, number>()
  for (const [index, record] of records.entries()) {
    const key = codeKeyOf(record)
    if (key !== undefined && !owners.has(formatKey(key))) owners.set(formatKey(key), index)
  }
  const used = new Set<string>()
  const keys: Array<LocationKeyColumns> = []
  let shared = 0
  for (const [index, record] of records.entries()) {
    const code = codeKeyOf(record)
    const isOwner = code !== undefined && owners.get(formatKey(code)) === index
    const key = isOwner ? code : idKeyOf(record)
    if (key === undefined || (!isOwner && (owners.has(formatKey(key)) || used.has(formatKey(key)))))
      return E.left(
        configFailure(
          key === undefined && code === undefined
            ? `lookups.locations: location ${index + 1} of ${records.length} has neither a code nor an id.`
            : `lookups.locations: location ${index + 1} of ${records.length} has ` +
                'the code and codeType of another, and no id that distinguishes them.',
        ),
      )
    if (!isOwner && code !== undefined) shared += 1
    used.add(formatKey(key))
    keys.push(key)
  }
  return E.right({ keys, shared })
}

const jsonAttributes = ['productMappings', 'entityMappings', 'additionalAttributes', 'labels']
const timeAttributes = ['createdTime', 'modifiedTime']

/** A time as ISO 8601: in UTC if it has no zone, also with a space, or given as seconds or milliseconds since 1970. */
const toTimeText = (value: unknown): unknown => {
  const isNumeric = typeof value === 'number' || (typeof value === 'string' && /^\d{9,14}$/.test(value))
  if (isNumeric) {
    const time = new Date(Number(value) * (Number(value) < 1e11 ? 1000 : 1))
    return Number.isNaN(time.getTime()) ? value : time.toISOString()
  }
  return typeof value === 'string' ? value.trim().replace(' ', 'T') : value
}

/** The value of an attribute in the declared form, if it can be converted without loss. */
const toDeclaredValue = (name: string, value: unknown): unknown => {
  if (value === null || value === undefined) return null
  if (jsonAttributes.includes(name)) return printExactJson(value)
  if (timeAttributes.includes(name)) return toTimeText(value)
  if (name === 'id') return typeof value === 'string' && /^\d{1,18}$/.test(value) ? BigInt(value) : value
  const isScalar = ['number', 'bigint', 'boolean'].includes(typeof value)
  return name in ManagedLocation.props && isScalar ? String(value) : value
}

const toColumns = (record: LookupRecord, key: LocationKeyColumns): LookupRecord => ({
  ...Object.fromEntries(Object.entries(record).map(([name, value]) => [name, toDeclaredValue(name, value)])),
  ...key,
})

/** Columns of a record that do not have the declared type become null; undeclared ones are handled as configured. */
const createRowBuilder = (source: SourceEnv) => {
  const cutPage = createCutter({
    list: 'locations',
    codec: ManagedLocationRecord,
    primaryKey: '',
    cursor: '',
    undeclared: source.onUnknown,
    ...defined({ actions: source.actions.managed_locations }),
  })
  return (records: ReadonlyArray<LookupRecord>) =>
    pipe(
      assignKeys(records),
      E.chain(({ keys, shared }) =>
        pipe(
          cutPage(
            Buffer.from(
              printExactJson({
                locations: records.map((record, index) => toColumns(record, keys[index] as LocationKeyColumns)),
              }),
            ),
          ),
          E.bimap(
            (error) => toFailure('look up locations', error),
            ({ rows, unknownPaths }) => ({ rows, unknownPaths, shared }),
          ),
        ),
      ),
    )
}

const sharedCodeWarning = (count: number): string =>
  `managed_locations: ${count} locations have the code and codeType ` +
  'of another. Their code is their id, with the codeType id.'

/** The list of the active locations that the service manages. */
export const createManagedLocationsStream = (settings: LookupListSettings): Stream<SourceEnv> => {
  const reader: Reader<SourceEnv, Row> = {
    name: 'look up locations',
    read: (source) => (requests) => {
      const [request] = requests
      if (request === undefined) return feedOf()
      return chainEffect(
        pipe(
          readLookupList({
            ...settings,
            setting: 'lookups.locations',
            fetch: source.api.lookupLocations,
            identify: ({ id }) => toText(id) || undefined,
            isSample: source.samplesLookups ?? false,
          }),
          TE.mapLeft((error) => toLookupFailure('locations', error)),
          TE.flatMapEither((list) =>
            pipe(
              createRowBuilder(source)(list.records),
              E.map((built) => ({ list, ...built })),
            ),
          ),
        ),
        ({ list, rows, unknownPaths, shared }) =>
          concatFeed(() => lookupEvents(source, request, list, rows))(
            feedOf<Failure, ReaderEvent>(
              ...[
                ...collectUnknownAttributes()(unknownPaths),
                ...(shared === 0 ? [] : [sharedCodeWarning(shared)]),
              ].map((message) => E.right(warningEvent(message))),
            ),
          ),
      )
    },
  }
  return defineStream({
    name: 'managed_locations',
    codec: ManagedLocationRecord,
    primaryKey: ['code', 'codeType'],
    reader,
    project: (row: Row) => [row],
  })
}

export const managedLocationsStream = createManagedLocationsStream({
  recordsPath: 'data',
  paging: publishedLocationPaging,
  query: publishedLocationOrder,
})
