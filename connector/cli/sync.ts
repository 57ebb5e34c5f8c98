import { defineCommand } from '../cdk'
import { configOption, getOrThrow, loadSourceConfig } from '../config'
import { createSource, formatOutcomes, syncSnapshot } from '../runtime'
import { selectStreams } from '../streams'
import { selectOption } from './catalog'
import { historyOption } from './snapshot'

export const syncCommand = defineCommand({
  name: 'sync',
  summary: 'Reads what is new into a DuckDB file, from where the file stands.',
  options: {
    config: configOption,
    db: { type: 'string', value: 'FILE', help: 'The DuckDB file; made if it is missing', required: true },
    select: selectOption,
    'full-refresh': { type: 'boolean', help: 'Read everything again and replace what is there' },
    history: historyOption,
    json: { type: 'boolean', help: 'Print the outcome as JSON' },
  },
  examples: [
    'feedback sync --config config.json --db reviews.duckdb',
    'feedback sync --config config.json --db reviews.duckdb --select reviews --full-refresh',
    'feedback sync --config config.json --db reviews.duckdb --history',
  ],
  notes:
    'Exit status: 0 all streams are complete, 1 one is not (what was read is kept, the next run goes on from there).',
  run: async (io, { options }) => {
    const config = await loadSourceConfig(io, String(options.config))
    const wired = getOrThrow(createSource(config))
    const selected = getOrThrow(
      selectStreams(wired.streams, options.select === undefined ? undefined : String(options.select)),
    )
    const { ending, outcomes } = await syncSnapshot(io, wired, {
      path: String(options.db),
      streams: selected,
      history: options.history === true,
      syncMode: options['full-refresh'] === true ? 'full_refresh' : 'incremental',
    })
    await wired.close()
    await io.print(options.json === true ? `${JSON.stringify(outcomes, null, 2)}\n` : formatOutcomes(outcomes))
    return ending === 'complete' ? 0 : 1
  },
})
