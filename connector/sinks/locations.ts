import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as O from 'fp-ts/Option'
import * as TE from 'fp-ts/TaskEither'
import * as t from 'io-ts'
import { Location } from '../api/model/location'
import { configFailure, type Failure } from '../cdk/failure'
import { type Answer, type Columns, type Note, type Prepared, type Rest, sink } from '../cdk/sink'
import { locationAnswer } from './location-answer'
import { checkMapping, mapper } from './mapping'
import { approve, keyOf, type Place, type Plan, placeOf, plan, titleOf } from './plan'
import { isThere, refused } from './refused'
import type { Target } from './target'
import { isTombstone } from './tombstone'

const name = 'locations'

/** Operation 5: one sync creates, updates and deactivates. Sent again, locations are what they were. */
export const locations = sink<Target, Location>({
  name,
  codec: Location,
  matchingKeys: ['code', 'codeType'],
  operations: ['update', 'soft_delete'],
  open: (target) =>
    TE.fromIO(() => {
      const list: List = { listed: new Map(), unreadable: 0 }
      return {
        prepare: (inlet) =>
          pipe(
            checkMapping(inlet, name, Location, target.mapping[name]),
            E.map(() => preparer(target, list, inlet.deletes)),
          ),
        write: (items, suspected) => send(target, items, suspected),
        answers: isThere(target.api.syncLocations([])),
        finish: (whole) => reconcile(target, list, whole),
      }
    }),
})

/** What the input lists, whatever becomes of its records. */
type List = { readonly listed: Map<string, Place & { readonly active: boolean }>; unreadable: number }

const Key = t.partial({ code: t.string, codeType: t.string })

const preparer = ({ mapping, ledger }: Target, list: List, deletes: boolean) => {
  const toMapped = mapper(Location, mapping[name])
  const toKey = mapper(Key, mapping[name])
  const enlist = (location: Location): void => {
    const place = placeOf(location)
    if (O.isSome(ledger)) list.listed.set(keyOf(place), { ...place, active: location.active === true })
  }
  /** A location is listed by its code, be the rest of its record wrong. */
  const enlistByCode = (columns: Columns): void => {
    const key = toKey(columns)
    if (E.isLeft(key) || key.right.code === undefined) list.unreadable += 1
    else enlist({ ...key.right, active: true })
  }
  const judged = (columns: Columns): E.Either<string, Prepared<Location>> =>
    pipe(
      toMapped(columns),
      E.filterOrElse(
        ({ code }) => code != null,
        () => 'code is missing',
      ),
      E.map((mapped) => {
        const item = { ...mapped, active: deletes || isTombstone(columns) ? false : (mapped.active ?? true) }
        enlist(item)
        return { item, key: keyOf(placeOf(item)) }
      }),
    )
  return (columns: Columns): E.Either<string, Prepared<Location>> => {
    const prepared = judged(columns)
    if (E.isLeft(prepared)) enlistByCode(columns)
    return prepared
  }
}

const send = (
  { api, ledger, resend }: Target,
  items: ReadonlyArray<Location>,
  suspected: boolean,
): TE.TaskEither<Failure, Answer> =>
  pipe(
    resend(suspected)(api.syncLocations(items)),
    TE.map((result) => locationAnswer(items, result)),
    TE.orElse((error) => TE.fromEither(refused('sync locations', error))),
    TE.chainFirst((answer) => (O.isSome(ledger) ? noted(ledger.value.note, items, answer) : TE.right(undefined))),
  )

const noted = (
  note: (entries: ReadonlyArray<Place & { readonly active: boolean }>) => Promise<void>,
  items: ReadonlyArray<Location>,
  answer: Answer,
): TE.TaskEither<Failure, void> => {
  const verdicts = answer._tag === 'Verdicts' ? answer.verdicts : []
  const accepted = items.filter((_, index) => verdicts[index]?._tag === 'Accepted')
  return accepted.length === 0
    ? TE.right(undefined)
    : TE.tryCatch(
        () => note(accepted.map((item) => ({ ...placeOf(item), active: item.active === true }))),
        (error) =>
          configFailure(
            `reconcile.ledger_path cannot be written: ${error instanceof Error ? error.message : String(error)}. Make room, or name another file.`,
          ),
      )
}

const nothing: Rest<Location> = { items: [], notes: [] }
const noting = (level: Note['level'], message: string): E.Either<Failure, Rest<Location>> =>
  E.right({ ...nothing, notes: [{ level, message }] })

/** Deactivates what the ledger has and a complete list has not. */
const reconcile = ({ ledger, maxDeactivationsPercent, dryRun }: Target, list: List, whole: boolean) => {
  if (O.isNone(ledger)) return E.right(nothing)
  if (!whole)
    return noting('warn', 'locations: the input was no complete list, so nothing is deactivated that it does not name.')
  if (list.unreadable > 0)
    return noting(
      'warn',
      `locations: ${list.unreadable} records have no code that can be read and may be of any location, so nothing is deactivated that the list does not name.`,
    )
  const { active } = ledger.value
  const made = plan(active, list.listed)
  return pipe(
    approve(made, active.size, maxDeactivationsPercent),
    E.map(() => ({
      items: made.deactivations.map((place) => ({ item: toDeactivation(place), key: keyOf(place) })),
      notes: notesOf(made, dryRun),
    })),
  )
}

const toDeactivation = ({ code, codeType }: Place): Location => ({
  code,
  ...(codeType === null ? {} : { codeType }),
  active: false,
})

/** `whole`: each location, and not only those that are to go. */
const notesOf = ({ creates, updates, deactivations }: Plan, whole: boolean): ReadonlyArray<Note> => {
  const each = (verb: string, places: ReadonlyArray<Place>): ReadonlyArray<Note> =>
    places.map((place) => ({ level: 'info', message: `locations: ${verb} ${titleOf(place)}` }))
  const count = (places: ReadonlyArray<Place>, what: string) => `${places.length} ${what}`
  return [
    {
      level: 'info',
      message: `locations: ${count(creates, 'created')}, ${count(updates, 'updated')}, ${count(deactivations, 'to deactivate')}.`,
    },
    ...(whole ? [...each('create', creates), ...each('update', updates)] : []),
    ...each('deactivate', deactivations),
  ]
}
