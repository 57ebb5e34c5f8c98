import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as RA from 'fp-ts/ReadonlyArray'
import * as t from 'io-ts'
import type { SourceState } from './catalog'
import { configFailure, type Failure } from './failure'
import { parseJson } from './json/parse'
import { decodeValue, formatIssues } from './json/validate'
import { nullish } from './schema'

/** Parses the object or list in a JSON string, because some platforms store a state, or parts of it, as strings. */
const parseText = (value: unknown): unknown =>
  typeof value === 'string' && /^\s*[[{]/.test(value)
    ? pipe(
        parseJson(value),
        E.getOrElse((): unknown => value),
      )
    : value

const parseTexts = (value: unknown): unknown => {
  const parsed = parseText(value)
  return t.UnknownRecord.is(parsed)
    ? Object.fromEntries(Object.entries(parsed).map(([key, inner]) => [key, parseText(inner)]))
    : parsed
}

/**
 * The value of a Singer state: the value itself, a printed STATE line, or the output of `meltano state get`. None for
 * anything else.
 */
const findSingerState = (text: unknown): O.Option<Readonly<Record<string, unknown>>> => {
  const given = parseText(text)
  if (!t.UnknownRecord.is(given)) return O.none
  if (given.type === 'STATE' && 'value' in given) return findSingerState(given.value ?? {})
  if ('singer_state' in given) return findSingerState(given.singer_state ?? {})
  const keys = Object.keys(given)
  if ('bookmarks' in given) return O.some({ ...given, bookmarks: parseTexts(given.bookmarks) })
  return 'currently_syncing' in given || keys.length === 0 ? O.some(given) : O.none
}

/** The bookmarks that are not empty, by stream. */
const bookmarksOf = (value: Readonly<Record<string, unknown>>): SourceState =>
  t.UnknownRecord.is(value.bookmarks)
    ? Object.fromEntries(
        Object.entries(value.bookmarks).filter(
          ([, bookmark]) => t.UnknownRecord.is(bookmark) && Object.keys(bookmark).length > 0,
        ),
      )
    : {}

const StreamDescriptor = t.type({ name: t.string })
const StreamState = t.type({ stream_descriptor: StreamDescriptor })
const StateMessage = t.type({
  stream: nullish(StreamState),
  global: nullish(t.type({ stream_states: nullish(t.readonlyArray(nullish(StreamState))) })),
  global_: nullish(t.type({ stream_states: nullish(t.readonlyArray(nullish(StreamState))) })),
  data: nullish(t.UnknownRecord),
})

/** A state message whose parts are parsed if they are strings. */
const parseMessageTexts = (message: unknown): unknown => {
  const given = parseTexts(message)
  return t.UnknownRecord.is(given) && 'data' in given ? { ...given, data: parseTexts(given.data) } : given
}

/**
 * A state file: an array of state messages (STREAM, GLOBAL or LEGACY), one such message, printed STATE lines,
 * LEGACY's bare object of streams, or a state of the Singer tap. Empty forms and nulls mean no state.
 */
export const decodeAirbyteState = (value: unknown): E.Either<Failure, SourceState> => {
  const given = parseText(value)
  if (given === null || given === undefined) return E.right({})
  const list = Array.isArray(given) ? given : [given]
  return pipe(
    list,
    RA.filter((item) => item !== null),
    E.traverseArray(decodeStateItem),
    E.map((states) => Object.assign({}, ...states) as SourceState),
  )
}

/** An object of states by stream name. */
const decodeLegacyState = (value: Readonly<Record<string, unknown>>): E.Either<Failure, SourceState> => {
  const wrongName = Object.keys(value).find((name) => value[name] !== null && !t.UnknownRecord.is(value[name]))
  return wrongName === undefined
    ? E.right(value)
    : E.left(
        configFailure(
          `The state is wrong: ${wrongName} is not the state of a stream. Give the ` +
            'states that a run printed, or the output of feedback state export.',
        ),
      )
}

const decodeStateItem = (text: unknown): E.Either<Failure, SourceState> => {
  const value = parseText(text)
  const singer = findSingerState(value)
  if (O.isSome(singer)) return E.right(bookmarksOf(singer.value))
  const stateLine = t.type({ type: t.literal('STATE'), state: t.unknown }).decode(value)
  const message = parseMessageTexts(E.isRight(stateLine) ? stateLine.right.state : value)
  if (!t.UnknownRecord.is(message))
    return E.left(configFailure('The state is wrong: each item must be an object with a state message.'))
  if (!['stream', 'global', 'global_', 'data', 'type', 'state_type'].some((key) => key in message))
    return decodeLegacyState(message)
  return pipe(
    decodeValue(StateMessage, message),
    E.bimap(
      (issues) => configFailure(`The state is wrong: ${formatIssues(issues)}.`),
      ({ stream, global, global_, data }) => ({
        ...(data ?? {}),
        ...Object.fromEntries(
          [stream, ...(global?.stream_states ?? []), ...(global_?.stream_states ?? [])].flatMap((item) => {
            const state = parseText((item as { stream_state?: unknown } | null | undefined)?.stream_state)
            return item === null || item === undefined || !t.UnknownRecord.is(state) || Object.keys(state).length === 0
              ? []
              : [[item.stream_descriptor.name, state]]
          }),
        ),
      }),
    ),
  )
}

/**
 * A state file as `read --state` accepts it: a JSON array with one state message per line. `state`: JSON text, which
 * stays unchanged.
 */
export const formatStateFile = (states: ReadonlyArray<{ readonly stream: string; readonly state: string }>): string => {
  const messages = states.map(
    ({ stream, state }) =>
      `{"type":"STREAM","stream":{"stream_descriptor":${JSON.stringify({ name: stream })},"stream_state":${state}}}`,
  )
  return messages.length === 0 ? '[]\n' : `[\n${messages.join(',\n')}\n]\n`
}

/** A Singer state as it was given. Each state replaces the one before, so the next STATE repeats all of it. */
export type SingerState = {
  readonly value: Readonly<Record<string, unknown>>
  readonly bookmarks: SourceState
  /** The stream that an interrupted run was reading. */
  readonly currentlySyncing: O.Option<string>
}

const toSingerState = (whole: Readonly<Record<string, unknown>>): SingerState => ({
  value: whole,
  bookmarks: bookmarksOf(whole),
  currentlySyncing: typeof whole.currently_syncing === 'string' ? O.some(whole.currently_syncing) : O.none,
})

const lastOf = (value: unknown): unknown => (Array.isArray(value) ? value.at(-1) : value)

/** A state file: Singer's value, printed lines of it (the last wins), or a state of the Airbyte source. */
export const decodeSingerState = (given: unknown): E.Either<Failure, SingerState> =>
  pipe(
    findSingerState(lastOf(parseText(given)) ?? {}),
    O.match(
      () =>
        pipe(
          decodeAirbyteState(given),
          E.map((bookmarks) => toSingerState({ bookmarks })),
        ),
      (whole) => E.right(toSingerState(whole)),
    ),
  )

/** `whole` with these bookmarks replacing those of the same streams. */
export const replaceBookmarks = (
  whole: SingerState['value'],
  bookmarks: SourceState,
  syncing: string | undefined,
): SingerState['value'] => ({
  ...whole,
  bookmarks: { ...(t.UnknownRecord.is(whole.bookmarks) ? whole.bookmarks : {}), ...bookmarks },
  currently_syncing: syncing ?? null,
})
