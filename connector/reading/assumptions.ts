import { configFailure, type Failure, transientFailure } from '../cdk'

/**
 * What a list is assumed to do while it is read (docs/how-reading-works.md). Each assumption is checked, and whatever
 * breaks one either changes how the list is read or ends the stream INCOMPLETE.
 */
export const assumptions = {
  A1: 'an answer holds all rows that match its filter as they were at one moment',
  A2: 'an answer shorter than its limit ends the list',
  A3: 'rows that nobody touches keep their order',
  A4: 'filters by mention time are honoured, and a row that nobody touches keeps its mention time',
  A5: 'a change gets a later modifiedTime, and is shown within lookback_minutes',
  A6: 'modifiedTimeFrom is read as UTC, the same way in every run',
  A7: "the service's Date is not ahead of the clock that stamps rows by more than lookback_minutes",
} as const

export type Assumption = keyof typeof assumptions

/** An assumption turned out to be false, and the rest can be read another way. `seen`: what was observed, a clause. */
export class Breach extends Error {
  constructor(
    readonly assumption: Assumption,
    readonly seen: string,
  ) {
    super(seen)
  }
}

/** The read ends INCOMPLETE: the cursor stays where it was. */
export class Incomplete extends Error {
  constructor(readonly failure: Failure) {
    super(failure.message)
  }
}

/** A later run may succeed. `what`: the list and what was seen there, a clause. */
export const incompleteForNow = (assumption: Assumption, what: string): Incomplete =>
  new Incomplete(
    transientFailure(
      `${what}, so it is not certain that everything was read (${assumption}: ${assumptions[assumption]}). ` +
        'The cursor of the stream did not move: run again, at a quieter time if possible.',
    ),
  )

/** Nothing but the service or the config can change it. `remedy`: what the user can do, a sentence. */
export const incompleteForGood = (assumption: Assumption, what: string, remedy: string): Incomplete =>
  new Incomplete(
    configFailure(
      `${what}, so it is not certain that everything was read (${assumption}: ` +
        `${assumptions[assumption]}). The cursor of the stream did not move. ${remedy}`,
    ),
  )

type InList = { readonly env: { readonly list: { readonly name: string } } }

/** A row that was read before, or must exist, is missing even after repeated requests. */
export const missingRows = ({ env: { list } }: InList): Incomplete =>
  incompleteForNow(
    'A1',
    `${list.name}: the list ends before rows that the service has shown, in 6 answers within 15.5 s`,
  )

/** Every offset returns the same rows. */
export const ignoredOffset = ({ env: { list } }: InList): Incomplete =>
  incompleteForGood(
    'A3',
    `${list.name}: the service ignores offset: the same rows come at further offsets`,
    "Please ask the service's operator.",
  )

/** A list that no filter divides can only be read as deep as the service allows offsets. */
export const refusedOffset = ({ env: { list } }: InList, offset: number): Incomplete =>
  incompleteForGood(
    'A3',
    `${list.name}: the service refuses offset ${offset} of a list that cannot be read in smaller windows`,
    "Ask the service's operator for deeper offsets, or for sources to read one by one.",
  )
