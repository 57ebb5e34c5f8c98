// The checked configurations: their constants, and if the invariant holds. Every safeguard is on unless named.

export const invariants = { Reading: 'NothingLost', Runs: 'DestinationIsEqual' }

const on = (...safeguards) => Object.fromEntries(safeguards.map((name) => [name, 'TRUE']))
const off = (...safeguards) => Object.fromEntries(safeguards.map((name) => [name, 'FALSE']))

export const defaults = {
  Reading: {
    Start: '"pages"',
    Order: '"ascending"',
    Filter: '"kept"',
    Unmentioned: 'FALSE',
    EndRows: 1,
    Changes: 0,
    Moves: 0,
    Cuts: 0,
    Outages: 0,
    Lagging: 'FALSE',
    Kills: 0,
    ...on('Overlap', 'Probe', 'PassKnown', 'KnownEnd', 'EmptyRule', 'OrderCheck', 'PlaceCheck', 'TokenMoved'),
    ...on('Counts', 'WholeGroup', 'Sweep', 'Bracket', 'RoundIds'),
  },
  Runs: {
    Ids: '{a, b, c}',
    Changes: 2,
    MaxTime: 5,
    Lag: 1,
    Ahead: '{0}',
    Behind: '{0}',
    Kills: 0,
    Deletions: 'FALSE',
    ...on('Lookback', 'ExtraSecond', 'Slack', 'CursorFromRows', 'CursorAtEnd', 'SecondScan', 'LaterEventWins'),
  },
}

const holds = (name, spec, constants) => ({ name, spec, constants, holds: true })
const breaks = (name, spec, constants) => ({ name, spec, constants, holds: false })

const windows = { Start: '"window"' }
const rounds = { Start: '"rounds"' }
const descending = { Order: '"descending"' }
const unmentioned = { Unmentioned: 'TRUE' }
// Two rows with the same time, since a single row does not show how far the clock is that stamps rows.
const simultaneous = { Changes: 3, MaxTime: 4 }
const deletions = { Deletions: 'TRUE', Ids: '{a, b}', MaxTime: 4 }

export const configurations = [
  // The whole.
  ...['ascending', 'descending', 'stored'].flatMap((order) => {
    const check = (name, constants) => holds(`${name}-${order}`, 'Reading', { Order: `"${order}"`, ...constants })
    return [
      check('changes', { Changes: 2 }),
      check('cut', { Changes: 1, Cuts: 1 }),
      check('outages', { Changes: 1, Outages: 2 }),
      check('replica', { Changes: 1, Lagging: 'TRUE' }),
      check('kill', { Changes: 1, Cuts: 1, Kills: 1 }),
      check('windows', { ...windows, Changes: 1, Cuts: 1 }),
      check('windows-outages', { ...windows, Changes: 1, Outages: 2 }),
      check('rounds', { ...rounds, Changes: 1, Cuts: 1 }),
    ]
  }),
  holds('two-end-rows', 'Reading', { EndRows: 2, Changes: 2 }),
  holds('two-end-rows-windows', 'Reading', { ...windows, EndRows: 2, Changes: 1, Cuts: 1 }),
  holds('moved-cut', 'Reading', { Moves: 1, Cuts: 1 }),
  holds('moved-outage', 'Reading', { Moves: 1, Outages: 1 }),
  holds('moved-kill', 'Reading', { Moves: 1, Kills: 1 }),
  holds('moved-twice', 'Reading', { Moves: 2 }),
  holds('moved-unmentioned', 'Reading', { Moves: 1, ...unmentioned }),
  holds('moved-filter-ignored', 'Reading', { Moves: 1, Filter: '"ignored"', ...unmentioned }),
  holds('moved-deletions', 'Reading', { Moves: 2, Filter: '"none"' }),
  holds('windows-unmentioned', 'Reading', { ...windows, Changes: 1, ...unmentioned }),
  holds('rounds-moved', 'Reading', { ...rounds, Moves: 2 }),
  holds('clocks', 'Runs', { Ahead: '{0, 2}', Behind: '{0, 1}' }),
  holds('kill-between-runs', 'Runs', { Kills: 1, Ids: '{a, b}', MaxTime: 4 }),
  holds('late-rows', 'Runs', simultaneous),
  holds('deletions', 'Runs', deletions),

  // Safeguards that can be off without losing anything within these bounds, since others cover for them.
  holds('without-order-check', 'Reading', { Moves: 1, Cuts: 1, ...off('OrderCheck') }),
  holds('without-cursor-from-rows', 'Runs', { Ahead: '{2}', Ids: '{a, b}', ...off('CursorFromRows') }),

  // Losses in spite of all safeguards.
  breaks('limit-two-cuts', 'Reading', { Cuts: 2 }),
  breaks('limit-move-hidden-by-deletion', 'Reading', { Moves: 1, Changes: 1 }),
  breaks('limit-unmentioned-hidden-by-cut', 'Reading', { ...windows, Changes: 1, Cuts: 1, ...unmentioned }),

  // One safeguard less.
  breaks('without-overlap', 'Reading', { Changes: 1, ...off('Overlap') }),
  breaks('without-probe', 'Reading', { Cuts: 1, ...off('Probe') }),
  breaks('without-passing-known-pages', 'Reading', { Changes: 1, Cuts: 1, ...off('PassKnown') }),
  breaks('without-known-end', 'Reading', { Changes: 2, Cuts: 1, ...off('KnownEnd') }),
  breaks('without-empty-rule', 'Reading', { Outages: 1, ...off('EmptyRule') }),
  breaks('without-empty-rule-in-windows', 'Reading', { ...windows, Outages: 2, ...off('EmptyRule') }),
  breaks('without-place-check', 'Reading', { Moves: 1, ...off('PlaceCheck') }),
  breaks('without-moved-in-token', 'Reading', { Moves: 1, Kills: 1, ...off('TokenMoved') }),
  breaks('without-counts', 'Reading', { ...windows, Cuts: 1, ...off('Counts') }),
  breaks('without-whole-group', 'Reading', { ...windows, ...descending, Changes: 1, Cuts: 1, ...off('WholeGroup') }),
  breaks('without-sweep', 'Reading', { ...windows, ...unmentioned, ...off('Sweep') }),
  breaks('without-bracket', 'Reading', { ...windows, Changes: 1, ...unmentioned, ...off('Bracket') }),
  breaks('without-ids-of-a-round', 'Reading', { ...rounds, Moves: 2, ...off('RoundIds') }),
  breaks('without-lookback', 'Runs', { ...simultaneous, ...off('Lookback') }),
  breaks('without-extra-second', 'Runs', { ...simultaneous, ...off('ExtraSecond') }),
  breaks('without-slack', 'Runs', { Ahead: '{2}', ...off('Slack') }),
  breaks('without-cursor-at-end', 'Runs', { Kills: 1, ...off('CursorAtEnd') }),
  breaks('without-second-scan', 'Runs', { Kills: 1, Ids: '{a, b}', MaxTime: 4, ...off('SecondScan') }),
  breaks('without-later-event-wins', 'Runs', { ...deletions, MaxTime: 3, ...off('LaterEventWins') }),
]
