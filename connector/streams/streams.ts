import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as RA from 'fp-ts/ReadonlyArray'
import { configFailure, type Failure, type JsonSchema, type Stream, type StreamInfo, suggestName } from '../cdk'
import type { ExportFilters } from '../export'
import { withSecondLook } from './empty-lists'
import { commentsStream, transparencyReviewsStream } from './entities/operations'
import { entityRatingsStream } from './entities/ratings'
import { decodeEntityState } from './entities/state'
import { decodeExportState } from './export-state'
import {
  checkLookups,
  createLookupStream,
  type LookupListSettings,
  type LookupName,
  type LookupSettings,
} from './lookups'
import { createManagedLocationsStream, managedLocationsStream } from './managed-locations'
import { applyPrivacyToSchema, checkPrivacy, type PrivacySettings } from './privacy'
import {
  reviewContentsStream,
  reviewEngagementsStream,
  reviewLiabilitiesStream,
  reviewSentimentsStream,
  reviewTasksStream,
} from './review-children'
import { locationsStream, providersStream, sourcesStream } from './review-dimensions'
import { categoriesStream, questionsStream } from './review-names'
import { deletedReviewsStream, deletionExportOperation, reviewExportOperation, reviewsStream } from './reviews'
import type { ReviewEntitySettings, SourceEnv } from './source-env'
import { addLookedUpRecord } from './source-lookup'
import { addSyncAudit, syncAuditStream } from './sync-audit'
import { addTombstones, type DeletedAtColumn } from './tombstones'

/**
 * The streams of every config, in the order in which they are read. Deletions come before reviews: a review that is
 * restored between the two is then read after its deletion, and stays.
 */
export const streams: ReadonlyArray<Stream<SourceEnv>> = [
  deletedReviewsStream,
  reviewsStream,
  locationsStream,
  providersStream,
  sourcesStream,
  categoriesStream,
  questionsStream,
  reviewContentsStream,
  reviewSentimentsStream,
  reviewLiabilitiesStream,
  reviewTasksStream,
  reviewEngagementsStream,
  commentsStream,
  transparencyReviewsStream,
  entityRatingsStream,
]

/** Every stream that a config can have: those of every config, and those that it must ask for. */
export const declaredStreams: ReadonlyArray<Stream<SourceEnv>> = [...streams, managedLocationsStream, syncAuditStream]

/** The key of the config that a stream is there with, where it is not there with every config. */
const keysOfStreams: Readonly<Record<string, string>> = {
  [managedLocationsStream.name]: 'lookups.locations',
  [syncAuditStream.name]: 'audit: true',
}

/** The parts of the config that change the streams. */
type StreamSettings = {
  readonly privacy: PrivacySettings
  readonly fromReviews: ReviewEntitySettings
  /** The column that marks deletions in `reviews`; none: `deleted_reviews` alone tells of them. */
  readonly tombstones: O.Option<DeletedAtColumn>
  /**
   * The lookups whose operation is configured; the other dimensions are made of the reviews. `publishedSources`:
   * sources are looked up as published, or made of the reviews where that is refused.
   */
  readonly lookups: Partial<Readonly<Record<LookupName, LookupSettings>>> & {
    readonly locations?: LookupListSettings
    readonly publishedSources?: boolean
  }
  /** Whether `sync_audit` tells what the run has sent of the other streams. */
  readonly audit?: boolean
}

/** The stream as its lookup changes it. `managed_locations` is there only with its lookup. */
const applyLookup =
  (lookups: StreamSettings['lookups']) =>
  (stream: Stream<SourceEnv>): ReadonlyArray<Stream<SourceEnv>> => {
    if (stream.name === managedLocationsStream.name)
      return lookups.locations === undefined
        ? []
        : [{ ...createManagedLocationsStream(lookups.locations), schema: stream.schema }]
    const lookup = stream.name === 'sources' || stream.name === 'categories' ? lookups[stream.name] : undefined
    if (lookup !== undefined) return [createLookupStream(stream.name as LookupName, lookup)]
    return stream.name === 'sources' && lookups.publishedSources === true
      ? [{ ...stream, schema: addLookedUpRecord(stream.schema) }]
      : [stream]
  }

/** The streams as the settings change them; a failure names the settings that are not allowed. */
export const applyStreamSettings = ({
  privacy,
  fromReviews,
  tombstones,
  lookups,
  audit = false,
}: StreamSettings): E.Either<Failure, ReadonlyArray<Stream<SourceEnv>>> =>
  pipe(
    checkPrivacy(privacy, declaredStreams, fromReviews),
    E.chain(() => checkLookups(lookups)),
    E.map(() => declaredStreams.filter((stream) => stream !== syncAuditStream).map(applyPrivacyToSchema(privacy))),
    E.map(RA.chain(applyLookup(lookups))),
    E.map((all) =>
      pipe(
        tombstones,
        O.match(
          () => all,
          (column) => addTombstones(column, all),
        ),
      ),
    ),
    E.map(addSecondLook),
    E.map((all) => (audit ? addSyncAudit(all) : all)),
  )

/** The streams with readers that ask again for an empty list. Streams that share a reader still do. */
const addSecondLook = (all: ReadonlyArray<Stream<SourceEnv>>): ReadonlyArray<Stream<SourceEnv>> => {
  const readers = new Map(all.map(({ reader }) => [reader, withSecondLook(reader)]))
  return all.map((stream) => ({ ...stream, reader: readers.get(stream.reader) ?? stream.reader }))
}

/**
 * The streams of a comma-separated list of names; all of them without a list. A failure names those that do not exist.
 */
export const selectStreams = (
  all: ReadonlyArray<Stream<SourceEnv>>,
  names: string | undefined,
): E.Either<Failure, ReadonlyArray<Stream<SourceEnv>>> => {
  if (names === undefined) return E.right(all)
  const selected = names.split(',').map((name) => name.trim())
  const unknown = selected.filter((name) => !all.some((stream) => stream.name === name))
  if (unknown.length === 0) return E.right(all.filter(({ name }) => selected.includes(name)))
  const known = all.map(({ name }) => name)
  const hints = unknown.flatMap((name) =>
    name in keysOfStreams ? [` ${name} is there with ${keysOfStreams[name]} in the config.`] : [],
  )
  return E.left(
    configFailure(
      `--select names ${unknown.join(', ')}, which does not exist.${hints.join('')} ` +
        `Choose among ${known.join(', ')}.${suggestName(unknown[0] ?? '', known)}`,
    ),
  )
}

const feedbackStreams: ReadonlyArray<Stream<SourceEnv>> = [
  commentsStream,
  transparencyReviewsStream,
  entityRatingsStream,
]

/** The type of an attribute in a schema, whether it may be null or not. */
const typeOf = ({ properties }: JsonSchema, attribute: string): string => {
  const { type, format } = (properties as Readonly<Record<string, JsonSchema>> | undefined)?.[attribute] ?? {}
  const types = [type].flat().filter((name) => name !== 'null')
  return [...types, format].join()
}

/**
 * Why a stream that somebody sends is not one of ours; undefined if it is. A lookup has the key that its config names.
 */
export const findForeignProblem = ({
  name,
  primaryKey,
  schema,
}: Pick<StreamInfo, 'name' | 'primaryKey' | 'schema'>): string | undefined => {
  const own = declaredStreams.find((stream) => stream.name === name)
  if (own === undefined) return `no stream of ours is called ${name}`
  if (['sources', 'categories'].includes(name) && typeOf(schema, 'record') === 'object,') return undefined
  if (primaryKey.join() !== own.primaryKey.join())
    return `the key of our ${name} is ${own.primaryKey.join(', ')}, not ${primaryKey.join(', ') || 'none'}`
  const other = own.primaryKey.find((attribute) => typeOf(schema, attribute) !== typeOf(own.schema, attribute))
  return other === undefined
    ? undefined
    : `${other} of our ${name} is ${typeOf(own.schema, other).replace(',', ' ').trim()}`
}

/** The keys of a state that tell where its stream goes on; a run without them cannot go on at all. */
const cursorKeys = ['modifiedTimeFrom', 'fromDate', 'readAt'] as const

/**
 * Why the next run could not go on from the cursor of a stream's state; undefined if it can, and for a stream that is
 * not ours.
 */
export const findStateProblem = (name: string, state: unknown): string | undefined => {
  const stream = declaredStreams.find((other) => other.name === name)
  if (stream === undefined || typeof state !== 'object' || state === null) return undefined
  const entries = Object.entries(state).filter(([key]) => cursorKeys.some((other) => other === key))
  const cursor = O.some(Object.fromEntries(entries))
  const result: E.Either<Failure, unknown> = feedbackStreams.includes(stream)
    ? decodeEntityState(name, cursor)
    : decodeExportState(name, cursor)
  return E.isLeft(result) ? result.left.message : undefined
}

/** The names of the streams that are read in one scan with a stream, itself included. */
export const streamsReadWith = (name: string): ReadonlyArray<string> => {
  const reader = streams.find((stream) => stream.name === name)?.reader
  return streams.filter((stream) => stream.reader === reader).map((stream) => stream.name)
}

/** What limits the scan that an export's stream is read by. */
export const exportFilters = (source: SourceEnv, name: string): ExportFilters =>
  (name === deletedReviewsStream.name ? deletionExportOperation : reviewExportOperation).filters(source)
