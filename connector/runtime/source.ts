import { accessSync, constants, existsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import type { TaskEither } from 'fp-ts/TaskEither'
import { createApi, type LookupRoutes, toMillis } from '../api'
import {
  configFailure,
  defined,
  type Failure,
  identifyService,
  mapDefined,
  type OpenSource,
  pathFailure,
  type ServiceIdentity,
  type Stream,
} from '../cdk'
import type { SourceConfig } from '../config'
import {
  applyStreamSettings,
  createEntityIndex,
  createRunSummary,
  type DeletedAtColumn,
  type PrivacySettings,
  privacyActions,
  type SourceEnv,
} from '../streams'
import { createClient, type ServiceClient, type ServiceClientOptions, toLocationLookup, toLookupPaging } from './client'

/** A source that is connected to its service. */
export type ConfiguredSource = Required<OpenSource<SourceEnv>>

/** The streams with the settings of a config; `deletedAt`: the column with which the protocol marks a deletion. */
export const buildStreams = (
  config: SourceConfig,
  deletedAt: DeletedAtColumn = '_ab_cdc_deleted_at',
): E.Either<Failure, ReadonlyArray<Stream<SourceEnv>>> =>
  applyStreamSettings({
    privacy: toPrivacy(config),
    fromReviews: config.entities.from_reviews,
    tombstones: config.deletes === 'tombstones' ? O.some(deletedAt) : O.none,
    lookups: {
      ...defined({
        sources: mapDefined(config.lookups.sources, toKeyedLookup),
        categories: mapDefined(config.lookups.categories, toKeyedLookup),
        locations: mapDefined(config.lookups.locations, (locations) => toLocationLookup(locations).list),
      }),
      publishedSources: isPublishedLookup(config),
    },
    audit: config.audit,
  })

/** A lookup with its key attribute; undefined if the config names none, as for the published lookup. */
const toKeyedLookup = ({
  records_path,
  primary_key,
  paging,
}: NonNullable<SourceConfig['lookups']['sources' | 'categories']>) =>
  primary_key === undefined
    ? undefined
    : {
        recordsPath: records_path,
        primaryKey: primary_key,
        ...defined({ paging: mapDefined(paging, toLookupPaging) }),
      }

/** Sources are looked up the way deployments have been seen to offer it. */
const isPublishedLookup = ({ lookups: { sources } }: SourceConfig): boolean =>
  sources !== undefined && sources.primary_key === undefined

/** Where deployments have been seen to list the sources. */
const publishedSourcesPath = '/api/reputation/v1/sources'

const toLookupRoutes = ({ lookups: { sources, categories, locations } }: SourceConfig): LookupRoutes =>
  defined({
    sources: mapDefined(sources, ({ method, path = publishedSourcesPath }) => ({ method, path })),
    categories,
    locations: mapDefined(locations, (lookup) => toLocationLookup(lookup).route),
  })

const toPrivacy = ({ privacy: { drop, hash, hash_key } }: SourceConfig): PrivacySettings => ({
  drop,
  hash,
  hashKey: hash_key,
})

/** Identifies whose data a config reads. An application id shows the account, an access token does not. */
export const identifySource = ({ base_url, credentials }: SourceConfig): ServiceIdentity =>
  identifyService(base_url, credentials.auth_type === 'application' ? credentials.application_id : undefined)

type SourceOptions = ServiceClientOptions & { readonly deletedAt?: DeletedAtColumn }

/**
 * The source that a config describes. Fails if an address is not allowed, an attribute cannot be hidden, or two keys
 * contradict each other.
 */
export const createSource = (config: SourceConfig, options: SourceOptions): E.Either<Failure, ConfiguredSource> =>
  pipe(
    E.Do,
    E.bind('streams', () => buildStreams(config, options.deletedAt)),
    E.chainFirst(() => checkCombinations(config)),
    E.bind('connected', () => createClient(config, options)),
    E.map(({ streams, connected }) => ({
      streams,
      env: toSource(config, connected),
      service: identifySource(config),
      onWait: connected.onWait,
      close: connected.close,
    })),
  )

/** Fails if the values of two keys contradict each other. */
const checkCombinations = ({
  partition,
  audit,
  activate_version,
  mention_time_after: after,
  mention_time_before: before,
}: SourceConfig): E.Either<Failure, void> => {
  if (partition !== undefined && partition.index >= partition.count)
    return E.left(
      configFailure(`The config is wrong: partition.index must be less than partition.count (${partition.count}).`),
    )
  if (partition !== undefined && activate_version)
    return E.left(
      configFailure(
        'The config is wrong: activate_version cannot be used with ' +
          'partition, since each share would delete the rows of the others.',
      ),
    )
  if (partition !== undefined && audit)
    return E.left(
      configFailure(
        'The config is wrong: audit cannot be used with partition, ' +
          'since the rows of the other shares would count as well.',
      ),
    )
  return after !== undefined && before !== undefined && toMillis(after) >= toMillis(before)
    ? E.left(
        configFailure(
          'The config is wrong: mention_time_after must be earlier ' +
            'than mention_time_before, or no review lies between.',
        ),
      )
    : E.right(undefined)
}

/** Loaded only when a file is opened or checked: it loads DuckDB, which doubles a command's start time. */
export const loadSnapshotRoom = () => import('../snapshot/index.js')
export const loadLakeRoom = () => import('../lake/index.js')

/**
 * Fails if the file that a config names cannot be read and written, or created, or if its time zone does not exist.
 * Neither opens nor creates the file. Without a file, the time zone is not checked if DuckDB, which knows the zones, is
 * not installed.
 */
export const checkOutput =
  ({ snapshot_path, reporting_time_zone }: SourceConfig): TaskEither<Failure, void> =>
  async () => {
    if (snapshot_path === undefined && reporting_time_zone === undefined) return E.right(undefined)
    const { checkTimeZone, findDuckdb, findPathProblem, isLakePath } = await loadSnapshotRoom()
    const duckdb = findDuckdb()
    if (E.isLeft(duckdb)) return snapshot_path === undefined ? E.right(undefined) : duckdb
    const problem =
      snapshot_path === undefined || isLakePath(snapshot_path)
        ? undefined
        : (findPathProblem(snapshot_path) ?? findAccessProblem(snapshot_path))
    return problem === undefined
      ? checkTimeZone(reporting_time_zone)()
      : E.left(configFailure(`snapshot_path: ${problem.message.replace(' with --db.', '.')}`))
  }

/** Why a file cannot be created, or read and written if it exists. */
const findAccessProblem = (path: string): Failure | undefined => {
  try {
    const found = statSync(path, { throwIfNoEntry: false })
    if (found?.isDirectory()) return configFailure(`${path} is a folder. Give the path of a file.`)
    if (found === undefined && !existsSync(dirname(path)))
      return configFailure(`${path}: its folder does not exist. Make it, or give another path.`)
    accessSync(found === undefined ? dirname(path) : path, constants.R_OK | constants.W_OK)
    return undefined
  } catch (error) {
    return pathFailure(path, error)
  }
}

const toSource = (config: SourceConfig, { send, wait }: ServiceClient): SourceEnv => ({
  api: createApi(send, toLookupRoutes(config)),
  now: Date.now,
  wait,
  startDate: toMillis(config.start_date),
  lookback: config.lookback_minutes * 60_000,
  filters: {
    ...defined({
      sources: config.sources,
      mentionTimeAfter: mapDefined(config.mention_time_after, formatInstant),
      mentionTimeBefore: mapDefined(config.mention_time_before, formatInstant),
    }),
    additionalFields: config.additional_fields,
  },
  partition: O.fromNullable(config.partition),
  pageSize: config.page_size,
  concurrency: config.rate_limit.max_concurrency,
  onUnknown: config.on_unknown_attribute,
  actions: privacyActions(toPrivacy(config)),
  entities: {
    persons: config.entities.person_ids,
    locations: config.entities.location_ids,
    entities: config.entities.entity_ids,
    fromReviews: config.entities.from_reviews,
  },
  feedback: toFeedback(config),
  entityIndex: createEntityIndex(),
  acceptEmptyLists: config.accept_empty_lists,
  ...(config.audit ? { runSummary: createRunSummary() } : {}),
  ...defined({
    sourceLookup: isPublishedLookup(config)
      ? mapDefined(config.lookups.sources, ({ records_path, paging }) => ({
          recordsPath: records_path,
          ...defined({ paging: mapDefined(paging, toLookupPaging) }),
        }))
      : undefined,
  }),
})

const formatInstant = (time: string): string => new Date(toMillis(time)).toISOString()

const toFeedback = ({ feedback_filters: filters, feedback_lookback_days }: SourceConfig): SourceEnv['feedback'] => ({
  thresholds: defined({
    minThreshold: filters.min_threshold,
    minSurveyCount: filters.min_survey_count,
    minRatingCount: filters.min_rating_count,
    minWordCount: filters.min_word_count,
  }),
  ...defined({ additionalFields: filters.additional_fields }),
  perPage: filters.per_page,
  days: filters.days,
  lookbackDays: feedback_lookback_days,
})
