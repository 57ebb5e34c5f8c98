import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import { command } from '../cdk/cli'
import { readJson } from '../cdk/file'
import { inFile, orStop, runOrStop } from '../load'
import { type ExpectedStreams, expectedStreams } from '../snapshot/configured-catalog'
import { incoming } from '../snapshot/incoming'
import { saveTo } from '../snapshot/save'
import { table } from '../sync'
import { dbOption, withSnapshot } from './db-option'

export const snapshot = command({
  name: 'snapshot',
  summary: 'Writes Airbyte or Singer messages from stdin into a DuckDB file.',
  options: {
    db: { ...dbOption, help: 'The DuckDB file; made if it is missing' },
    catalog: { type: 'string', value: 'FILE', help: "The run's configured catalog; Singer messages need none" },
    json: { type: 'boolean', help: 'Print the outcome as JSON' },
  },
  examples: [
    'source-feedback read --config config.json --catalog catalog.json | feedback snapshot --db reviews.duckdb --catalog catalog.json',
    'tap-feedback --config config.json | feedback snapshot --db reviews.duckdb',
  ],
  notes: 'Exit status: 0 all streams are complete, 1 one is not (what its states cover is kept).',
  run: async (io, { options }) => {
    const expected = options.catalog === undefined ? undefined : await loadExpected(String(options.catalog))
    return withSnapshot(String(options.db), 'write', async (opened) => {
      const wishes = Object.fromEntries([...(expected ?? [])].map(([stream, { wish }]) => [stream, wish]))
      const saver = await saveTo(opened, { now: Date.now, wishes })
      for await (const message of incoming(until(io.stop, io.stdin), {
        now: Date.now,
        ...(expected && { expected }),
      })) {
        if (message._tag === 'Log') io.warn(message.message)
        await saver.write(message)
      }
      const outcomes = await saver.finish()
      if (options.json === true) await io.print(`${JSON.stringify(outcomes, null, 2)}\n`)
      else io.warn(table(outcomes).trimEnd())
      return outcomes.every(({ status }) => status === 'complete') ? 0 : 1
    })
  },
})

/** Ends the input at a signal, so that what has come is committed. */
async function* until<A>(stop: AbortSignal, input: AsyncIterable<A>): AsyncIterable<A> {
  const stopped = new Promise<undefined>((resolve) =>
    stop.addEventListener('abort', () => resolve(undefined), { once: true }),
  )
  const items = input[Symbol.asyncIterator]()
  while (!stop.aborted) {
    const next = await Promise.race([items.next(), stopped])
    if (next === undefined || next.done === true) return
    yield next.value
  }
}

const loadExpected = async (path: string): Promise<ExpectedStreams> =>
  orStop(pipe(expectedStreams(await runOrStop(readJson('catalog', path))), E.mapLeft(inFile(path))))
