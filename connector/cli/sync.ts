import { defineCommand, getOrThrow, loadConfig } from '../cdk'
import { sourceFormat } from '../config'
import { createSource, syncSnapshot } from '../runtime'
import { selectStreams } from '../streams'
import { configOption, historyOption, outputDbOption, selectOption, variablePrefix } from './options'
import { formatJson, formatLoadSummaries } from './table'

export const syncCommand = defineCommand({
  name: 'sync',
  summary: 'Reads what is new into a DuckDB file, from the states that the file holds.',
  options: {
    config: configOption,
    db: outputDbOption,
    select: selectOption,
    'full-refresh': { type: 'boolean', help: 'Read everything again and replace what is in the file' },
    history: historyOption,
    json: { type: 'boolean', help: 'Print the outcome as JSON' },
  },
  examples: [
    'feedback sync --config config.json --db reviews.duckdb',
    'feedback sync --config config.json --db reviews.duckdb --select reviews --full-refresh',
    'feedback sync --config config.json --db reviews.duckdb --history',
  ],
  notes:
    'Exit status: 0 all streams are complete, 1 a stream is not complete (what was read is kept, and the next run continues from there).',
  run: async (io, { options }) => {
    const config = await loadConfig(io, sourceFormat, options.config, variablePrefix)
    const configured = getOrThrow(createSource(config))
    const { outcome, summaries } = await syncSnapshot(io, configured, {
      path: options.db,
      streams: getOrThrow(selectStreams(configured.streams, options.select)),
      history: options.history,
      syncMode: options['full-refresh'] ? 'full_refresh' : 'incremental',
    })
    await configured.close()
    await io.print(options.json ? formatJson(summaries) : formatLoadSummaries(summaries))
    return outcome === 'complete' ? 0 : 1
  },
})
