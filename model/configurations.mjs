// What is checked: the constants of each configuration, and whether the invariant holds. Every safeguard is on unless it is named.

export const invariants = { Scan: 'NothingLost', Runs: 'DestinationIsEqual' }

export const defaults = {
  Scan: {
    Order: '"ascending"',
    Rows: 5,
    RowsPerTime: 1,
    YoungRows: 1,
    PageSize: 3,
    Changes: 0,
    Shuffles: 0,
    LateRows: 0,
    ShortPages: 0,
    Outages: 0,
    Kills: 0,
    Unmentioned: '{}',
    SampleStep: 2,
    MaxRewinds: 3,
    MaxRereads: 1,
    Overlap: 'TRUE',
    Witness: 'TRUE',
    Doubt: 'TRUE',
    WitnessOrder: 'TRUE',
    CountRepeats: 'TRUE',
    ConfirmEnd: 'TRUE',
    WitnessedEnd: 'TRUE',
    RereadEnd: 'TRUE',
    LookAtStart: 'TRUE',
    Halving: 'TRUE',
    Sweep: 'TRUE',
    TokenRows: 'TRUE',
    RowsBeforeToken: 'TRUE',
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
    Lookback: 'TRUE',
    ExtraSecond: 'TRUE',
    Slack: 'TRUE',
    CursorFromRows: 'TRUE',
    CursorAtEnd: 'TRUE',
    SecondScan: 'TRUE',
    LaterEventWins: 'TRUE',
  },
}

const off = (...safeguards) => Object.fromEntries(safeguards.map((name) => [name, 'FALSE']))
const holds = (name, spec, constants) => ({ name, spec, constants, holds: true })
const breaks = (name, spec, constants) => ({ name, spec, constants, holds: false })

const ties = { RowsPerTime: 5, YoungRows: 0, Shuffles: 1 }
// Two rows of one time, since a row alone does not show how far the clock is that stamps rows.
const simultaneous = { Changes: 3, MaxTime: 4 }
const deletions = { Deletions: 'TRUE', Ids: '{a, b}', MaxTime: 4 }

export const configurations = [
  // The whole.
  ...['ascending', 'descending', 'stored'].map((order) =>
    holds(`changes-${order}`, 'Scan', { Order: `"${order}"`, Changes: 2 }),
  ),
  holds('kill', 'Scan', { Changes: 1, Kills: 1 }),
  holds('outage', 'Scan', { Changes: 2, Outages: 1 }),
  holds('short-pages', 'Scan', { ShortPages: 2 }),
  holds('short-page-changes', 'Scan', { Changes: 2, ShortPages: 1 }),
  holds('ties', 'Scan', ties),
  holds('ties-kill', 'Scan', { ...ties, Kills: 1, SampleStep: 1 }),
  holds('unmentioned', 'Scan', { ...ties, Unmentioned: '{2, 4}' }),
  holds('clocks', 'Runs', { Ahead: '{0, 2}', Behind: '{0, 1}' }),
  holds('kill-between-runs', 'Runs', { Kills: 1, Ids: '{a, b}', MaxTime: 4 }),
  holds('late-rows', 'Runs', simultaneous),
  holds('deletions', 'Runs', deletions),

  // Safeguards whose lack loses nothing within these bounds: others cover for them.
  holds('without-cursor-from-rows', 'Runs', { Ahead: '{2}', Ids: '{a, b}', ...off('CursorFromRows') }),
  holds('without-witness-order', 'Scan', { ...ties, ...off('WitnessOrder') }),
  holds('without-token-rows', 'Scan', { Changes: 2, Kills: 1, ...off('TokenRows') }),

  // Losses in spite of all safeguards, which docs/lossless-export.md names.
  breaks('limit-hidden-by-deletion', 'Scan', { ...ties, Rows: 4, RowsPerTime: 4, PageSize: 2, Changes: 1 }),
  breaks('limit-moved-while-stopped', 'Scan', { ...ties, Kills: 1 }),
  breaks('limit-short-pages', 'Scan', { Changes: 2, ShortPages: 2 }),

  // One safeguard less.
  breaks('without-overlap', 'Scan', { Changes: 1, ...off('Overlap') }),
  breaks('without-witness', 'Scan', { Changes: 2, ...off('Witness') }),
  breaks('without-doubt', 'Scan', { ...ties, ...off('Doubt') }),
  breaks('without-repeated-pages', 'Scan', { ...ties, ...off('CountRepeats') }),
  breaks('without-look-at-start', 'Scan', { ...ties, Order: '"descending"', ...off('LookAtStart') }),
  breaks('without-confirmed-end', 'Scan', { ShortPages: 1, ...off('ConfirmEnd') }),
  breaks('without-witnessed-end', 'Scan', { Changes: 2, ShortPages: 1, ...off('WitnessedEnd') }),
  breaks('without-rereads', 'Scan', { Changes: 2, Outages: 1, ...off('RereadEnd') }),
  breaks('without-halving', 'Scan', { ...ties, ...off('Halving') }),
  breaks('without-sweep', 'Scan', { ...ties, Unmentioned: '{2, 4}', ...off('Sweep') }),
  breaks('without-rows-before-token', 'Scan', { Changes: 1, Kills: 1, ...off('RowsBeforeToken') }),
  breaks('without-lookback', 'Runs', { ...simultaneous, ...off('Lookback') }),
  breaks('without-extra-second', 'Runs', { ...simultaneous, ...off('ExtraSecond') }),
  breaks('without-slack', 'Runs', { Ahead: '{2}', ...off('Slack') }),
  breaks('without-cursor-at-end', 'Runs', { Kills: 1, ...off('CursorAtEnd') }),
  breaks('without-second-scan', 'Runs', { Kills: 1, Ids: '{a, b}', MaxTime: 4, ...off('SecondScan') }),
  breaks('without-later-event-wins', 'Runs', { ...deletions, MaxTime: 3, ...off('LaterEventWins') }),
]
