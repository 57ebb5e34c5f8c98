import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import { describe, expect, test } from 'vitest'
import { configFailure, transientFailure } from '../../../connector/cdk/failure'
import { toInstant } from '../../../connector/cdk/scalar'
import type { CutRecord } from '../../../connector/export/cut/record'
import { createRowHistory } from '../../../connector/export/scan/history'
import type { Accepted } from '../../../connector/export/scan/pass'
import { advanceScan } from '../../../connector/export/scan/progress'
import {
  allScanRules,
  type ExactRounds,
  firstExactRound,
  newPass,
  newScanState,
  type ScanContext,
  type ScanState,
} from '../../../connector/export/scan/state'
import type { ScanWindow } from '../../../connector/export/scan/window'
import { reviewRecord } from '../../support/export-record'

const at = Date.UTC(2026, 0, 31)
const origin = { startDate: Date.UTC(2026, 0, 1), cursor: O.none, lookback: 600_000 }
const context: ScanContext = { operation: 'export', hasMentionTime: true, filters: {}, origin, rules: allScanRules }
const initial = newScanState({ origin, now: at, limit: 50, cutoff: at, windows: [{ kind: 'part' }] })
const state: ScanState = { ...initial, longestPage: 5, pass: { ...initial.pass, offset: 40, latePages: 2 } }
const fresh = newPass(state.from)
const passOver = { windows: [], pass: fresh, isUncertified: false, exactRounds: undefined }

type Case = {
  readonly state?: Partial<ScanState>
  readonly verdict?: Accepted
  readonly rows?: ReadonlyArray<CutRecord>
  readonly context?: Partial<ScanContext>
}
/** What follows a page, and whether a new pass began. */
const advance = (given: Case) => {
  const history = createRowHistory([])
  history.addPage([{ id: '1', modifiedTime: 1 }], [0], 0)
  const result = advanceScan(
    { ...context, ...given.context },
    history,
    { ...state, ...given.state },
    { rows: given.rows ?? [], filter: {}, unknownPaths: [] },
    given.verdict ?? { _tag: 'Done' },
  )
  return { result, isNewPass: history.lastPosition() === -1 }
}
const uncertified = (more: Partial<Extract<Accepted, { _tag: 'Uncertified' }>> = {}): Accepted => ({
  ...{ _tag: 'Uncertified', reason: 'the pages no longer join', pass: undefined },
  ...more,
})
const nextPass = { ...state.pass, offset: 80 }
const next: Accepted = { _tag: 'Next', pass: nextPass }
const goesOn = (changes: Partial<ScanState>, notes: ReadonlyArray<object> = [], isNewPass = true) => ({
  result: E.right([{ ...state, ...changes }, notes]),
  isNewPass,
})
const warning = (message: string) => ({ level: 'warn', message: `export: ${message}` })

describe('a pass that is over', () => {
  test('ends its window', () => {
    const others: ScanState['windows'] = [{ kind: 'sweep' }, { kind: 'part', sources: [3] }]
    const windows: ScanState['windows'] = [{ kind: 'part' }, ...others]
    expect(advance({ state: { windows, isUncertified: true } })).toEqual(goesOn({ ...passOver, windows: others }))
    expect(advance({ state: { windows: [{ kind: 'exact' }] } })).toEqual(goesOn(passOver))
    const exactRounds = firstExactRound()
    expect(advance({ state: { windows: [{ kind: 'sweep' }], exactRounds } })).toEqual(goesOn(passOver))
  })

  test('warns if the service ignores the offset', () => {
    const rows = [reviewRecord(1, at), reviewRecord(2, at)]
    expect(advance({ verdict: { _tag: 'Done', isOffsetIgnored: true }, rows })).toEqual(
      goesOn(passOver, [
        warning(
          'the same 2 rows come at every offset. They are fewer than a page may hold, so they are taken for all rows there are.',
        ),
      ]),
    )
  })
})

describe('a pass that goes on', () => {
  test('asks for its next page', () => {
    expect(advance({ verdict: next })).toEqual(goesOn({ pass: nextPass }, [], false))
    const sweep: Partial<ScanState> = { windows: [{ kind: 'sweep' }] }
    const rows = [reviewRecord(2, at - 9000), reviewRecord(1, at - 90_000)]
    expect(advance({ state: sweep, verdict: next, rows })).toEqual(goesOn({ ...sweep, pass: nextPass }, [], false))
    expect(advance({ verdict: next, rows })).toEqual(goesOn({ pass: nextPass }, [], false))
  })
})

describe('a pass that cannot be certified', () => {
  const rounds = { limit: 1000, pass: fresh, isUncertified: false }
  const inRounds = (reason: string) =>
    warning(`${reason}; everything is read in rounds until nothing new comes, some rows twice.`)

  test('over a sweep is read in rounds', () => {
    const windows: ScanState['windows'] = [{ kind: 'sweep' }, { kind: 'sweep', sources: [3] }]
    const started = goesOn(
      {
        ...rounds,
        windows: [
          { kind: 'exactSweep', hasRows: true },
          { kind: 'sweep', sources: [3] },
        ],
      },
      [inRounds('the pages no longer join')],
    )
    expect(advance({ state: { windows, isUncertified: true }, verdict: uncertified() })).toEqual(started)
    const longPages = advance({ state: { windows, limit: 2000 }, verdict: uncertified() }).result
    expect(E.isRight(longPages) && longPages.right[0].limit).toBe(2000)
  })

  test('over a sweep on a service that ignores the offset is over, with a warning', () => {
    const verdict = uncertified({ isOffsetIgnored: true })
    expect(advance({ state: { windows: [{ kind: 'sweep' }] }, verdict })).toEqual(
      goesOn(passOver, [
        warning(
          'from some offset on the same rows come again and again, so reviews without a mention time that come later cannot be read. Compare with `feedback verify --config`.',
        ),
      ]),
    )
  })

  test.each(['exact', 'exactSweep'] as const)('over an %s window goes on, and its rounds decide', (kind) => {
    const windows: ScanState['windows'] = [{ kind }]
    expect(advance({ state: { windows }, verdict: uncertified({ pass: nextPass }) })).toEqual(
      goesOn({ windows, pass: nextPass, isUncertified: true }, [], false),
    )
    expect(advance({ state: { windows }, verdict: uncertified() })).toEqual(goesOn(passOver))
    expect(advance({ state: { windows }, verdict: uncertified({ isOffsetIgnored: true }) }).result).toEqual(
      E.left(
        configFailure(
          "export: the service ignores offset: the same rows come at further offsets, and the export cannot be split into smaller parts. It is not certain that everything was read, so the cursor of the stream did not move; ask the service's operator.",
        ),
      ),
    )
  })

  const mentioned = (id: number, time: number): CutRecord => reviewRecord(id, at, { mentionTime: toInstant(time) })
  const inParts = 'export: the pages no longer join; the rest is read in smaller parts, some rows twice.'
  const middle = Date.UTC(2026, 0, 10)
  const bounds = (after: number | undefined, before: number | undefined) => ({
    ...(after === undefined ? {} : { mentionTimeAfter: toInstant(after) }),
    ...(before === undefined ? {} : { mentionTimeBefore: toInstant(before) }),
  })

  test('is split into halves, with a warning the first time', () => {
    const rows = [mentioned(1, middle - 5000), mentioned(2, middle), reviewRecord(3, at), mentioned(4, middle)]
    const halves: ReadonlyArray<ScanWindow> = [
      { kind: 'part', ...bounds(undefined, middle), hasRows: true },
      { kind: 'part', ...bounds(middle - 1, undefined), hasRows: true },
      { kind: 'sweep', hasRows: true },
    ]
    expect(advance({ verdict: uncertified(), rows, state: { isUncertified: true } })).toEqual(
      goesOn({ windows: halves, pass: fresh }, [{ level: 'warn', message: inParts }]),
    )
    const windows: ScanState['windows'] = [{ kind: 'part' }, { kind: 'sweep' }]
    expect(advance({ verdict: uncertified(), rows, state: { windows } })).toEqual(
      goesOn({ windows: [...halves, { kind: 'sweep' }], pass: fresh }, [{ level: 'debug', message: inParts }]),
    )
    const known: ScanState['windows'] = [{ kind: 'part', hasRows: true }]
    expect(advance({ verdict: uncertified(), rows, state: { windows: known } })).toEqual(
      goesOn({ windows: halves, pass: fresh }, [{ level: 'warn', message: inParts }]),
    )
    expect(advance({ verdict: uncertified(), state: { windows: [] } }).result).toMatchObject({ _tag: 'Right' })
  })

  test('is split into halves that need not have rows, and without a warning once it is a part', () => {
    const window: ScanWindow = { kind: 'part', ...bounds(middle, middle + 10_000) }
    const rows = [mentioned(1, middle + 8000), mentioned(2, middle + 8001)]
    expect(advance({ verdict: uncertified(), rows, state: { windows: [window] } })).toEqual(
      goesOn(
        {
          windows: [
            { kind: 'part', ...bounds(middle, middle + 8000), hasRows: false },
            { kind: 'part', ...bounds(middle + 7999, middle + 10_000), hasRows: true },
          ],
          pass: fresh,
        },
        [{ level: 'debug', message: inParts }],
      ),
    )
  })

  test('without any mention time is split halfway between 1970 and a day after the cutoff', () => {
    const halfway = (at + 86_400_000) / 2
    expect(advance({ verdict: uncertified(), rows: [reviewRecord(1, at)] })).toEqual(
      goesOn(
        {
          windows: [
            { kind: 'part', ...bounds(undefined, halfway), hasRows: false },
            { kind: 'part', ...bounds(halfway - 1, undefined), hasRows: false },
            { kind: 'sweep', hasRows: true },
          ],
          pass: fresh,
        },
        [{ level: 'warn', message: inParts }],
      ),
    )
  })

  test('and is too short to halve is split by sources, of which none must have rows', () => {
    const window: ScanWindow = { kind: 'part', ...bounds(middle, middle + 2) }
    const filters = { sources: [1, 2] }
    const rows = [mentioned(1, middle + 1)]
    expect(advance({ verdict: uncertified(), rows, context: { filters }, state: { windows: [window] } })).toEqual(
      goesOn(
        {
          windows: [
            { ...window, sources: [1], hasRows: false },
            { ...window, sources: [2], hasRows: false },
          ],
          pass: fresh,
        },
        [{ level: 'debug', message: inParts }],
      ),
    )
  })

  test('is split by sources, of which none must have rows', () => {
    const deletions = { hasMentionTime: false, filters: { sources: [1, 2] } }
    expect(advance({ verdict: uncertified(), rows: [reviewRecord(1, at)], context: deletions })).toEqual(
      goesOn(
        {
          windows: [
            { kind: 'part', sources: [1], hasRows: false },
            { kind: 'part', sources: [2], hasRows: false },
          ],
          pass: fresh,
        },
        [{ level: 'warn', message: inParts }],
      ),
    )
  })

  test('and cannot be split is read in rounds of long pages', () => {
    const deletions = { hasMentionTime: false }
    const exact = (hasRows: boolean, limit: number) =>
      goesOn({ windows: [{ kind: 'exact', hasRows }], pass: fresh, limit }, [{ level: 'warn', message: inParts }])
    expect(advance({ verdict: uncertified(), rows: [reviewRecord(1, at)], context: deletions })).toEqual(
      exact(true, 1000),
    )
    expect(advance({ verdict: uncertified(), context: deletions, state: { limit: 2000 } })).toEqual(exact(false, 2000))
  })

  test('is read in rounds if the service does not keep to the bounds of windows', () => {
    const windows: ScanState['windows'] = [{ kind: 'part', ...bounds(middle, undefined) }, { kind: 'sweep' }]
    const reason = inRounds('the service does not keep to the filters by mention time')
    expect(advance({ verdict: uncertified(), rows: [mentioned(1, middle - 5000)], state: { windows } })).toEqual(
      goesOn({ ...rounds, windows: [{ kind: 'exact', hasRows: true }] }, [reason]),
    )
    const asked: ReadonlyArray<ScanWindow> = [{ kind: 'part', ...bounds(middle - 10_000, undefined) }]
    expect(
      advance({
        ...{ verdict: uncertified(), rows: [reviewRecord(1, at)], state: { windows: windows.slice(0, 1) } },
        context: { windows: asked },
      }),
    ).toEqual(goesOn({ ...rounds, windows: [{ ...asked[0], kind: 'exact', hasRows: true }] as never }, [reason]))
  })

  test.each([
    [64, undefined, true],
    [65, undefined, false],
    [67, [1, 2, 3], true],
    [68, [1, 2, 3], false],
  ])('over one of %i windows, %j asked for, is split: %s', (count, asked, isSplit) => {
    const windows = Array.from({ length: count }, (): ScanWindow => ({ kind: 'part' }))
    const { result } = advance({
      ...{ verdict: uncertified(), rows: [mentioned(1, middle)], state: { windows } },
      context:
        asked === undefined
          ? {}
          : { windows: asked.map((source): ScanWindow => ({ kind: 'part', sources: [source] })) },
    })
    expect(E.isRight(result) && result.right[0].windows[0]?.kind === 'part').toBe(isSplit)
  })

  test('is over without the rule that halves it', () => {
    const rules = { ...allScanRules, halving: false }
    expect(advance({ verdict: uncertified({ pass: nextPass }), context: { rules } })).toEqual(goesOn(passOver))
  })
})

describe('a round over a window without order', () => {
  const windows: ScanState['windows'] = [{ kind: 'exact' }]
  const read = (count: number) => new Map(Array.from({ length: count }, (_, i) => [String(i), 1]))
  const round = (more: Partial<ExactRounds>, given: Partial<ScanState> = {}) =>
    advance({
      state: {
        ...{ windows, isUncertified: true },
        exactRounds: {
          ...{ ...firstExactRound(), round: 4, emptyRounds: 2, rowCount: 10, rowsBefore: 10, listLength: 10 },
          ...{ firstLength: 10, readIn: read(10), versions: read(10) },
          ...more,
        },
        ...given,
      },
    })
  /** One of its ten rows stands twice. */
  const doubled = { listLength: 11, firstLength: 11, places: [...read(10).keys(), '0'] }
  const outcome = (result: ReturnType<typeof round>['result']): string =>
    E.isLeft(result) ? 'fails' : result.right[0].windows.length === 0 ? 'ends' : 'again'

  test('ends the window with a note, or begins the next one', () => {
    expect(round({})).toEqual(
      goesOn(passOver, [
        { level: 'info', message: 'export: 10 ids were held in memory to read a part that keeps no order.' },
      ]),
    )
    const exactRounds = {
      ...{ round: 5, emptyRounds: 0, newRows: 0, rowCount: 0, lateRows: 0, rowsBefore: 10, listLength: 0 },
      ...{ firstLength: 10, versions: read(10), readIn: read(10), places: [], isStable: true, stableRounds: 0 },
    }
    expect(round({ newRows: 1, lateRows: 3 })).toEqual(
      goesOn({ windows, pass: fresh, isUncertified: false, exactRounds }),
    )
    expect(round({ newRows: 1, firstLength: undefined, listLength: 12 }).result).toMatchObject({
      right: [{ exactRounds: { firstLength: 12 } }, []],
    })
    expect(round({ round: 30, newRows: 9 }).result).toEqual(
      E.left(
        transientFailure(
          "export: the service's rows changed place faster than they could be read, in 30 attempts. The cursor of the stream did not move: run again, at a quieter time if possible.",
        ),
      ),
    )
  })

  test.each<[Partial<ExactRounds>, string, number?]>([
    [{ emptyRounds: 1 }, 'again', 2],
    [{ emptyRounds: 1, rowCount: 8 }, 'again', 2],
    [{ emptyRounds: 1, rowCount: 7 }, 'again', 1],
    [{ emptyRounds: 2, newRows: 1 }, 'again', 0],
    [{ emptyRounds: 9, listLength: 11, firstLength: 11 }, 'again', 10],
    [{ emptyRounds: 1, versions: new Map() }, 'again', 2],
    [{ emptyRounds: 9, ...doubled, stableRounds: 2 }, 'ends'],
    [{ emptyRounds: 9, ...doubled, stableRounds: 1 }, 'again', 10],
    [{ emptyRounds: 9, ...doubled, stableRounds: 2, isStable: false }, 'again', 10],
    [{ emptyRounds: 1, ...doubled, stableRounds: 2 }, 'again', 2],
    [{ newRows: 1, listLength: 35 }, 'again', 0],
    [{ newRows: 1, listLength: 36 }, 'fails'],
    [{ newRows: 9, round: 9 }, 'again', 0],
    [{ newRows: 9, round: 10 }, 'fails'],
    [{ newRows: 9, round: 11 }, 'fails'],
    [{ newRows: 2, rowCount: 100, round: 29 }, 'again', 0],
    [{ newRows: 2, rowCount: 100, round: 30 }, 'fails'],
    [{ newRows: 3, rowCount: 100, round: 10 }, 'fails'],
    [{ newRows: 2, rowCount: 100, round: 10, listLength: 11 }, 'fails'],
  ])('%j %s', (rounds, expected, emptyRounds) => {
    const { result } = round(rounds)
    expect(outcome(result)).toBe(expected)
    expect(E.isRight(result) ? result.right[0].exactRounds?.emptyRounds : undefined).toBe(emptyRounds)
  })

  test.each<[string, ScanWindow['kind'], Partial<ExactRounds>, string]>([
    ['ends a sweep that has no row', 'exactSweep', { emptyRounds: 0, versions: new Map() }, 'ends'],
    ['does not end a sweep that has one', 'exactSweep', { emptyRounds: 0, versions: read(1) }, 'again'],
    [
      'does not end a sweep after a part of its rows',
      'exactSweep',
      { emptyRounds: 0, versions: new Map(), rowCount: 7 },
      'again',
    ],
    ['does not end another window without a row', 'exact', { emptyRounds: 0, versions: new Map() }, 'again'],
  ])('that is the first without a new row %s', (_, kind, rounds, expected) => {
    expect(outcome(round(rounds, { windows: [{ kind }] }).result)).toBe(expected)
  })

  test('says how many rows of the list stand twice', () => {
    expect(round({ ...doubled, emptyRounds: 9, stableRounds: 2 })).toEqual(
      goesOn(passOver, [
        { level: 'info', message: 'export: 10 ids were held in memory to read a part that keeps no order.' },
        {
          level: 'warn',
          message:
            "export: 1 rows of the list are rows that it shows in another place too. Each row was read once; tell the service's operator.",
        },
      ]),
    )
  })

  test('forgets the places behind the end of a list that has become shorter', () => {
    expect(round({ ...doubled, newRows: 1, listLength: 9 }).result).toMatchObject({
      right: [{ exactRounds: { places: [...read(9).keys()] } }, []],
    })
  })

  test('does not end a sweep at once if not all rows were counted', () => {
    const full = Object.defineProperty(new Map<string, number>(), 'size', { get: () => 2_000_000 })
    const uncounted = { emptyRounds: 0, versions: new Map(), readIn: full }
    expect(outcome(round(uncounted, { windows: [{ kind: 'exactSweep' }] }).result)).toBe('again')
  })
})
