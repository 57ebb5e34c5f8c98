import { existsSync } from 'node:fs'
import { defineCommand, failureStatus, getOrThrow, runOrThrow } from '../cdk'
import { probeAccess, syncSnapshot } from '../runtime'
import { isLakePath } from '../snapshot'
import { selectStreams } from '../streams'
import { loadSourceConfig, openSource } from './configured-source'
import {
  configOption,
  historyOption,
  outputDbOption,
  placeOptions,
  requirePlace,
  selectOption,
  verbUsageError,
} from './options'
import { toSnapshotOptions } from './snapshot-file'
import { formatJson, formatSyncOutcome } from './table'

export const syncCommand = defineCommand({
  name: 'sync',
  summary: 'Reads what is new into a DuckDB file, continuing from the states in it.',
  options: {
    config: configOption,
    ...placeOptions,
    db: { ...outputDbOption, required: false },
    select: selectOption,
    'full-refresh': { type: 'boolean', help: 'Read everything again and replace what is in the file' },
    history: historyOption,
    'start-anew': { type: 'boolean', help: 'Empty a file that holds the data of another service, and read everything' },
    'service-moved': {
      type: 'boolean',
      help: 'Continue in this file: the service is the same, at a new address or with a new application id',
    },
    json: { type: 'boolean', help: 'Print the outcome as JSON' },
  },
  examples: [
    'feedback sync --config config.json --db reviews.duckdb',
    'feedback sync --config config.json --db reviews.duckdb --select reviews --full-refresh',
    'feedback sync --config config.json --db reviews.duckdb --history',
  ],
  notes:
    'What was read is kept, and the next run continues from there. Exit status: 0 all streams are ' +
    'complete; otherwise 75 run it again later, 78 change something first, 70 an error in the connector.',
  run: async (io, { options }) => {
    if (options['start-anew'] && options['service-moved'])
      throw verbUsageError('feedback sync', ' takes --start-anew or --service-moved, not both.')
    const path = requirePlace('feedback sync', options)
    const config = await loadSourceConfig(io, options.config)
    if (config.snapshot_path !== undefined)
      io.printWarning('snapshot_path has no effect on sync, which writes the file of --db.')
    const configured = openSource(io, config)
    // Before the file is opened, so that a wrong token neither creates nor changes it, and a wrong address does not
    // create it.
    await runOrThrow(probeAccess(configured, !isLakePath(path) && !existsSync(path)))
    const onStop = () =>
      io.printWarning('Stopping: what was read is being written. Ctrl-C again ends at once, which is safe too.')
    io.stop.addEventListener('abort', onStop, { once: true })
    const { outcome, failures, ...result } = await syncSnapshot(io, configured, {
      path,
      ...toSnapshotOptions(io, options),
      streams: getOrThrow(selectStreams(configured.streams, options.select)),
      history: options.history,
      reportingTimeZone: config.reporting_time_zone,
      otherService: options['start-anew'] ? 'empty' : options['service-moved'] ? 'moved' : 'refuse',
      syncMode: options['full-refresh'] ? 'full_refresh' : 'incremental',
    })
    await configured.close()
    await io.print(options.json ? formatJson(result.streams) : formatSyncOutcome(result.streams))
    for (const reason of result.skipReasons) io.printWarning(reason)
    if (outcome === 'stopped')
      io.printWarning(
        `Stopped. What was read is kept in ${options.db ?? 'the lake'}: ` +
          'run the same command again to continue from there.',
      )
    return outcome === 'complete' ? 0 : failureStatus(failures)
  },
})
