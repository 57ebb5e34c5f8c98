import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import { httpApi } from './api/api'
import type { ClientOptions } from './api/client'
import { toMillis } from './api/model/scalar'
import { configFailure, type Failure } from './cdk/failure'
import type { Stream } from './cdk/stream'
import type { SourceConfig } from './config'
import { type Connected, connect } from './connect'
import { streamsFor } from './streams'
import { nothingSeen } from './streams/entities/seen'
import { actionsOf, type Privacy } from './streams/privacy'
import type { Source } from './streams/source'
import type { DeletedAt } from './streams/tombstones'

/** A source at its service. */
export type Wired = Pick<Connected, 'onWait' | 'close'> & {
  /** The streams as the config shapes them, in the order in which they are read. */
  readonly streams: ReadonlyArray<Stream<Source>>
  readonly source: Source
}

/** The streams as a config shapes them; `deletedAt`: how the protocol marks a deletion. */
export const streamsOf = (
  config: SourceConfig,
  deletedAt: DeletedAt = '_ab_cdc_deleted_at',
): E.Either<Failure, ReadonlyArray<Stream<Source>>> =>
  streamsFor({
    privacy: privacyOf(config),
    fromReviews: config.entities.from_reviews,
    tombstones: config.deletes === 'tombstones' ? O.some(deletedAt) : O.none,
    lookups: {
      ...(config.lookups.sources === undefined ? {} : { sources: toLookup(config.lookups.sources) }),
      ...(config.lookups.categories === undefined ? {} : { categories: toLookup(config.lookups.categories) }),
    },
  })

const toLookup = ({ records_path, primary_key }: { readonly records_path: string; readonly primary_key: string }) => ({
  recordsPath: records_path,
  primaryKey: primary_key,
})

const privacyOf = ({ privacy: { drop, hash, hash_key } }: SourceConfig): Privacy => ({ drop, hash, hashKey: hash_key })

export type WireOptions = ClientOptions & { readonly deletedAt?: DeletedAt }

/** A config as a source; fails where an address may not be used, or an attribute not be hidden. */
export const wire = (config: SourceConfig, options: WireOptions = {}): E.Either<Failure, Wired> =>
  pipe(
    E.Do,
    E.bind('streams', () => streamsOf(config, options.deletedAt)),
    E.chainFirst(() => checkTogether(config)),
    E.bind('connected', () => connect(config, options)),
    E.map(({ streams, connected }) => ({
      streams,
      source: toSource(config, connected),
      onWait: connected.onWait,
      close: connected.close,
    })),
  )

/** What keys must not say together. */
const checkTogether = ({
  partition,
  mention_time_after: after,
  mention_time_before: before,
}: SourceConfig): E.Either<Failure, void> => {
  if (partition !== undefined && partition.index >= partition.count)
    return E.left(
      configFailure(`The config is wrong: partition.index must be less than partition.count (${partition.count}).`),
    )
  return after !== undefined && before !== undefined && toMillis(after) >= toMillis(before)
    ? E.left(
        configFailure(
          'The config is wrong: mention_time_after must be earlier than mention_time_before, or no review lies between.',
        ),
      )
    : E.right(undefined)
}

const toSource = (config: SourceConfig, { send }: Connected): Source => ({
  api: httpApi(send, {
    ...(config.lookups.sources === undefined ? {} : { sources: config.lookups.sources }),
    ...(config.lookups.categories === undefined ? {} : { categories: config.lookups.categories }),
  }),
  now: Date.now,
  startDate: toMillis(config.start_date),
  lookback: config.lookback_minutes * 60_000,
  filters: {
    ...(config.sources === undefined ? {} : { sources: config.sources }),
    ...(config.mention_time_after === undefined ? {} : { mentionTimeAfter: asInstant(config.mention_time_after) }),
    ...(config.mention_time_before === undefined ? {} : { mentionTimeBefore: asInstant(config.mention_time_before) }),
    additionalFields: config.additional_fields,
  },
  partition: O.fromNullable(config.partition),
  pageSize: config.page_size,
  order: config.export_order,
  concurrency: config.rate_limit.max_concurrency,
  onUnknown: config.on_unknown_attribute,
  actions: actionsOf(privacyOf(config)),
  entities: {
    persons: config.entities.person_ids,
    locations: config.entities.location_ids,
    entities: config.entities.entity_ids,
    fromReviews: config.entities.from_reviews,
  },
  feedback: toFeedback(config),
  seen: nothingSeen(),
})

const asInstant = (time: string): string => new Date(toMillis(time)).toISOString()

const toFeedback = ({ feedback_filters: given, feedback_lookback_days }: SourceConfig): Source['feedback'] => ({
  thresholds: {
    ...(given.min_threshold === undefined ? {} : { minThreshold: given.min_threshold }),
    ...(given.min_survey_count === undefined ? {} : { minSurveyCount: given.min_survey_count }),
    ...(given.min_rating_count === undefined ? {} : { minRatingCount: given.min_rating_count }),
    ...(given.min_word_count === undefined ? {} : { minWordCount: given.min_word_count }),
  },
  ...(given.additional_fields === undefined ? {} : { additionalFields: given.additional_fields }),
  perPage: given.per_page,
  days: given.days,
  lookbackDays: feedback_lookback_days,
})
