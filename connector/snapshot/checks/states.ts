import type { Check } from '../check'
import { literal, quoted } from '../database'
import { type Context, together } from './context'

const held = (stream: string) =>
  `(SELECT TRY_CAST(state->>'$.modifiedTimeFrom' AS TIMESTAMPTZ) FROM _state WHERE stream = ${literal(stream)})`
const complete = (stream: string) =>
  `(SELECT arg_max(status, load) = 'complete' FROM _loads WHERE stream = ${literal(stream)})`

/** How long before it was read a change may be later than the state of its run: the margin of the clock (scan.md, S). */
const asItWasRead = '5 minutes 5 seconds'

/** What a saved state promises: all rows up to its time are here, and the next run starts there. */
export const stateChecks = (streams: Context): ReadonlyArray<Check> => {
  const timed = streams.flatMap(({ name, cursor, columns }) =>
    cursor !== undefined && columns.some((column) => column.name === cursor && column.type === 'TIMESTAMPTZ')
      ? [{ name, cursor }]
      : [],
  )
  return [
    {
      name: 'states are there',
      explain:
        'Every stream read incrementally, by its cursor, has a state; without one the next run reads it from the start.',
      sql: `
      SELECT stream || ': no state' AS what FROM _loads JOIN _streams USING (stream)
      WHERE cursor IS NOT NULL AND status = 'complete' AND sync_mode = 'incremental' AND stream NOT IN (SELECT stream FROM _state) GROUP BY stream`,
    },
    {
      name: 'states are not ahead',
      explain:
        'No state is later than the newest record that came: the next run would pass over what lies between. Import an earlier state.',
      sql: together(
        timed
          .filter(({ cursor }) => cursor === 'modifiedTime')
          .map(
            ({ name }) => `
      SELECT ${literal(`${name}: state at `)} || state || ', newest record at ' || newest AS what
      FROM (SELECT ${held(name)} AS state, (SELECT max(cursor_to::TIMESTAMPTZ) FROM _loads WHERE stream = ${literal(name)}) AS newest)
      WHERE state > newest`,
          ),
      ),
    },
    {
      name: 'states are not behind',
      explain:
        "No row of a complete stream is later than the stream's state, but for changes made as it was read: rows and state were not saved together.",
      sql: together(
        timed.map(
          ({ name, cursor }) => `
      SELECT ${literal(`${name}: state at `)} || state || ', newest row at ' || newest AS what
      FROM (SELECT ${held(name)} AS state, (
        SELECT max(${quoted(cursor)}) FROM ${quoted(name)}
        WHERE ${quoted(cursor)} < _airbyte_extracted_at - INTERVAL '${asItWasRead}') AS newest)
      WHERE state < date_trunc('millisecond', newest) AND ${complete(name)}`,
        ),
      ),
    },
  ]
}
