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
 * The streams of every config, in reading order. Deletions come before reviews, so a review that is restored between
 * the two is read after its deletion, and stays.
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

/** Every stream that a config can have, including those that it must request. */
export const declaredStreams: ReadonlyArray<Stream<SourceEnv>> = [...streams, managedLocationsStream, syncAuditStream]

/** The config key that adds a stream, if not every config has it. */
const keysOfStreams: Readonly<Record<string, string>> = {
  [managedLocationsStream.name]: 'lookups.locations',
  [syncAuditStream.name]: 'audit: true',
}

/** The parts of the config that change the streams. */
type StreamSettings = {
  readonly privacy: PrivacySettings
  readonly fromReviews: ReviewEntitySettings
  /** The column that marks deletions in `reviews`; none: only `deleted_reviews` reports them. */
  readonly tombstones: O.Option<DeletedAtColumn>
  /**
   * The lookups whose operation is configured. The other dimensions are made from the reviews. `publishedSources`:
   * sources are looked up as published, or made from the reviews if that is refused.
   */
  readonly lookups: Partial<Readonly<Record<LookupName, LookupSettings>>> & {
    readonly locations?: LookupListSettings
    readonly publishedSources?: boolean
  }
  /** Adds `sync_audit`, which reports what the run has sent of the other streams. */
  readonly audit?: boolean
}

/** The stream as changed by its lookup. `managed_locations` exists only with its lookup. */
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

/** The streams as changed by the settings. A failure names the settings that are not allowed. */
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

/** Makes the readers of the streams request an empty list again. Streams that share a reader still do. */
const addSecondLook = (all: ReadonlyArray<Stream<SourceEnv>>): ReadonlyArray<Stream<SourceEnv>> => {
  const readers = new Map(all.map(({ reader }) => [reader, withSecondLook(reader)]))
  return all.map((stream) => ({ ...stream, reader: readers.get(stream.reader) ?? stream.reader }))
}

/** The streams in a comma-separated list of names, or all without a list. A failure names those that do not exist. */
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
    name in keysOfStreams ? [` ${name} needs ${keysOfStreams[name]} in the config.`] : [],
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

/** The type of an attribute in a schema, whether or not it may be null. */
const typeOf = ({ properties }: JsonSchema, attribute: string): string => {
  const { type, format } = (properties as Readonly<Record<string, JsonSchema>> | undefined)?.[attribute] ?? {}
  const types = [type].flat().filter((name) => name !== 'null')
  return [...types, format].join()
}

/**
 * Why a stream from another sender is not one of ours; undefined if it is. A lookup has the key that its config names.
 */
export const findForeignProblem = ({
  name,
  primaryKey,
  schema,
}: Pick<StreamInfo, 'name' | 'primaryKey' | 'schema'>): string | undefined => {
  const own = declaredStreams.find((stream) => stream.name === name)
  if (own === undefined) return `this connector has no stream ${name}`
  if (['sources', 'categories'].includes(name) && typeOf(schema, 'record') === 'object,') return undefined
  if (primaryKey.join() !== own.primaryKey.join())
    return `the key of our ${name} is ${own.primaryKey.join(', ')}, not ${primaryKey.join(', ') || 'none'}`
  const other = own.primaryKey.find((attribute) => typeOf(schema, attribute) !== typeOf(own.schema, attribute))
  return other === undefined
    ? undefined
    : `${other} of our ${name} is ${typeOf(own.schema, other).replace(',', ' ').trim()}`
}

/** The state keys that say where a stream continues. Without them a run cannot continue. */
const cursorKeys = ['modifiedTimeFrom', 'fromDate', 'readAt'] as const

/**
 * Why the next run could not continue from the cursor of a stream's state. Undefined if it can, and for foreign
 * streams.
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

/** The names of the streams read in the same scan as a stream, including itself. */
export const streamsReadWith = (name: string): ReadonlyArray<string> => {
  const reader = streams.find((stream) => stream.name === name)?.reader
  return streams.filter((stream) => stream.reader === reader).map((stream) => stream.name)
}

/** The filters of the scan that reads an export's stream. */
export const exportFilters = (source: SourceEnv, name: string): ExportFilters =>
  (name === deletedReviewsStream.name ? deletionExportOperation : reviewExportOperation).filters(source)
