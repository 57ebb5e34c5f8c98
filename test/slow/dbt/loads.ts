import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Sandbox, startSandbox } from '../../../connector/sandbox/start'
import { createJsonFolder, type JsonFolder } from '../../support/files'
import { type AirbyteStream, airbyteLines, configureStreams, type SingerStream } from '../../support/lines'
import { programPath, runProgram } from '../../support/program'
import { reviewsConfig } from '../../support/sandbox'
import { pythonProgram, requireOutput, runShellOrThrow } from '../interop/shell'
import { type Postgres, startPostgres } from './postgres'
import { startPython } from './python'

/** Where each loader of the test leaves its tables. */
export type Loads = {
  readonly snapshot: string
  readonly cache: string
  /** Runs each loader once more from its states. */
  readonly load: () => Promise<void>
}

/**
 * What fills tables: `feedback sync`, Meltano's target (also with deletions as tombstones), Airbyte's tables laid by
 * hand, PyAirbyte in DuckDB and in PostgreSQL.
 */
export type LoaderName = 'snapshot' | 'meltano' | 'tombstones' | 'airbyte' | 'cache' | 'pyairbyte'

/** The streams that every loader reads. */
export const loadedStreams = [
  'reviews',
  'deleted_reviews',
  'review_sentiments',
  'review_liabilities',
  'review_engagements',
  'review_tasks',
  'review_contents',
]

const airbyteReviewColumns = `
  id bigint, "modifiedTime" timestamptz, "surveyBarCode" varchar, location jsonb, provider jsonb, source jsonb,
  avatar jsonb, "mentionTime" timestamptz, rating decimal(38, 9), "reviewScore" decimal(38, 9), contents jsonb,
  "taskDetails" jsonb, "visitRecordId" varchar, brand jsonb, engagements jsonb, _ab_cdc_deleted_at timestamptz`

/** The tables of Airbyte's destination for PostgreSQL in append mode: a row for each record that ever came. */
const airbyteTables = `
  CREATE SCHEMA airbyte;
  CREATE TABLE airbyte.fb_reviews (
    _airbyte_raw_id varchar, _airbyte_extracted_at timestamptz, _airbyte_meta jsonb, _airbyte_generation_id bigint,
    ${airbyteReviewColumns}
  );`

/** A tap or source reads the sandbox for each of these loaders. */
export const createLoads = async (
  sandbox: Sandbox,
  postgres: Postgres,
  folder: string,
  loaders: ReadonlyArray<LoaderName>,
  streams: ReadonlyArray<string>,
): Promise<Loads> => {
  const put = (name: string, value: unknown): string => {
    const path = join(folder, name)
    writeFileSync(path, JSON.stringify(value))
    return path
  }
  const ok = async (program: Parameters<typeof runProgram>[0], ...args: ReadonlyArray<string>) => {
    const result = await runProgram(program, args)
    if (result.status !== 0) throw new Error(`${program} ${args.join(' ')}: ${result.stderr.slice(-2000)}`)
    return result.stdout
  }
  const config = put(
    'config.json',
    reviewsConfig(sandbox, {
      reporting_time_zone: 'Europe/Berlin',
      allow_http: true,
      page_size: 500,
      audit: true,
    }),
  )
  const tombstones = put('tombstones.json', reviewsConfig(sandbox, { allow_http: true, deletes: 'tombstones' }))
  const snapshot = join(folder, 'reviews.duckdb')
  const cache = join(folder, 'cache.duckdb')
  const { PGHOST: host, PGPORT: port, PGUSER: user, PGPASSWORD: password, PGDATABASE: database } = postgres.env
  const target = (schema: string) =>
    put(`target-${schema}.json`, { host, port: Number(port), user, password, database, default_target_schema: schema })

  /** A tap with the selected streams into a schema, from the state that the target printed last. */
  const singer = async (
    schema: string,
    settings: string,
    selected: ReadonlyArray<string>,
    env: Record<string, string>,
  ) => {
    const discovered = JSON.parse(await ok('tap-feedback', '--config', settings, '--discover')) as {
      readonly streams: ReadonlyArray<SingerStream>
    }
    const chosen = discovered.streams.filter((stream) => selected.includes(stream.tap_stream_id))
    const catalog = put(`${schema}-catalog.json`, {
      streams: chosen.map((stream) => ({
        ...stream,
        metadata: stream.metadata.map((entry) =>
          entry.breadcrumb.length === 0 ? { ...entry, metadata: { ...entry.metadata, selected: true } } : entry,
        ),
      })),
    })
    const state = join(folder, `${schema}-state.json`)
    const script = `
      set -euo pipefail
      state=(); [ ! -s "$3" ] || state=(--state "$3")
      node "$0" --config "$1" --catalog "$2" "\${state[@]}" 2>"$3.tap" |
        "$4" --config "$5" 2>"$3.target" | tail -n 1 >"$3.next" ||
        { tail -n 5 "$3.tap" "$3.target" >&2; exit 1; }
      [ ! -s "$3.next" ] || mv "$3.next" "$3"`
    const targetProgram = pythonProgram('target-postgres', 'target-postgres')
    const args = [programPath('tap-feedback'), settings, catalog, state, targetProgram, target(schema)]
    return () => runShellOrThrow('bash', ['-c', script, ...args], { cwd: folder, env })
  }

  postgres.ask(airbyteTables)
  const catalogs =
    airbyteLines(await ok('source-feedback', 'discover', '--config', tombstones))[0]?.catalog?.streams ?? []
  const reviews: ReadonlyArray<AirbyteStream> = catalogs.filter(({ name }) => name === 'reviews')
  const airbyteCatalog = put('airbyte-catalog.json', configureStreams(reviews, 'incremental'))
  let airbyteState: ReadonlyArray<unknown> = []
  let generation = 0
  const airbyte = async () => {
    const state = put('airbyte-state.json', airbyteState)
    const read = ['read', '--config', tombstones, '--catalog', airbyteCatalog, '--state', state]
    const lines = (await ok('source-feedback', ...read)).split('\n')
    airbyteState = airbyteLines(lines.filter((line) => line.startsWith('{"type":"STATE"')).join('\n')).map(
      ({ state }) => state,
    )
    generation += 1
    // As text, since an id may be larger than 2^53.
    const records = lines
      .filter((line) => line.startsWith('{"type":"RECORD"'))
      .map((line) => `('${line.replaceAll("'", "''")}'::jsonb)`)
    postgres.ask(`
      INSERT INTO airbyte.fb_reviews
      SELECT gen_random_uuid()::varchar, to_timestamp((line->'record'->>'emitted_at')::bigint / 1000.0),
        '{"changes": [], "sync_id": 1}', ${generation}, row.*
      FROM (VALUES ${records.join(',\n')}) AS given (line),
        jsonb_to_record(line->'record'->'data') AS row (${airbyteReviewColumns});`)
  }

  const isAirbyte = loaders.includes('cache') || loaders.includes('pyairbyte')
  const python = isAirbyte ? startPython('airbyte', { cwd: folder, env: postgres.env }) : undefined
  const runAirbyte = async (script: string, ...args: ReadonlyArray<string>) => {
    const answer = await python?.(script, [programPath('source-feedback'), config, ...args], ['airbyte'])
    return requireOutput(script, answer ?? { status: -1, output: 'PyAirbyte has not been started' })
  }
  const runs: Readonly<Record<LoaderName, () => Promise<unknown>>> = {
    snapshot: () => ok('feedback', 'sync', '--config', config, '--db', snapshot, '--history'),
    // The tables of this one have the times of the server's zone, as the target writes them; those of the next one UTC.
    meltano: await singer('feedback', config, streams, postgres.env),
    tombstones: await singer('tombstones', tombstones, ['reviews'], { ...postgres.env, PGTZ: 'UTC' }),
    airbyte,
    cache: () => runAirbyte(join(__dirname, '..', 'interop', 'read.py'), cache),
    pyairbyte: () => runAirbyte(join(__dirname, 'cache.py'), ...streams),
  }
  const load = async () => {
    for (const loader of loaders) await runs[loader]()
  }
  return { snapshot, cache, load }
}

/** A service whose reviews change between two runs of its loaders, and what the loaders made of it. */
export type LoadedService = {
  readonly sandbox: Sandbox
  readonly postgres: Postgres
  readonly files: JsonFolder
  readonly loads: Loads
  /** The reviews as they were before the changes. */
  readonly earlier: Awaited<ReturnType<Sandbox['truth']>>['reviews']
  readonly close: () => Promise<void>
}

/** Starts a sandbox with this many reviews and PostgreSQL, and runs these loaders before and after changes. */
export const loadChangingService = async (
  reviews: number,
  loaders: ReadonlyArray<LoaderName>,
  streams: ReadonlyArray<string> = loadedStreams,
): Promise<LoadedService> => {
  // How far the service's clock is ahead of ours, in milliseconds: a run leaves the last seconds to the next one.
  let ahead = 0
  const files = createJsonFolder()
  const postgres = await startPostgres()
  const sandbox = await startSandbox({ reviews, now: () => Date.now() + ahead })
  const close = async (): Promise<void> => {
    await sandbox.close()
    await postgres.stop()
    files.remove()
  }
  try {
    const loads = await createLoads(sandbox, postgres, files.path, loaders, streams)
    await loads.load()
    const { reviews: earlier } = await sandbox.truth()
    await sandbox.churn({ change: 80, delete: 30, add: 40 })
    ahead += 10_000
    await sandbox.churn({ restore: 8, change: 10 })
    ahead += 10_000
    await loads.load()
    return { sandbox, postgres, files, loads, earlier, close }
  } catch (error) {
    await close()
    throw error
  }
}
