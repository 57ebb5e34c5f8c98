import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Sandbox } from '../../connector/sandbox/start'
import { createJsonFolder, type JsonFolder } from '../support/files'
import { airbyteLines, airbyteState, configureStreams, recordTexts, singerLines, singerState } from '../support/lines'
import { runProgram } from '../support/program'
import { sandboxConfig, startTestSandbox } from '../support/sandbox'
import { createTapRunner } from './tap'

let sandbox: Sandbox
let files: JsonFolder
beforeAll(async () => {
  sandbox = await startTestSandbox({ reviews: 300 })
  files = createJsonFolder()
})
afterAll(async () => {
  await sandbox.close()
  files.remove()
})

const discover = async () => {
  const { stdout } = await runProgram('source-feedback', [
    'discover',
    '--config',
    files.put('config.json', sandboxConfig(sandbox)),
  ])
  const streams = airbyteLines(stdout)[0]?.catalog?.streams ?? []
  expect(streams.length).toBeGreaterThan(10)
  return streams
}
/** This stream has no cursor, so that every run sends its records. */
const withoutCursor = 'entity_ratings'

const read = async (state?: unknown) =>
  runProgram('source-feedback', [
    ...['read', '--config', files.put('config.json', sandboxConfig(sandbox))],
    ...['--catalog', files.put('catalog.json', configureStreams(await discover(), 'incremental'))],
    ...(state === undefined ? [] : ['--state', files.put('state.json', state)]),
  ])
/**
 * Some states hold the service's time at the start of the run, or the distance of a clock from it, which differ between
 * two runs.
 */
const withoutClock = (states: Readonly<Record<string, object>>) =>
  Object.fromEntries(
    Object.entries(states).map(([name, state]) => [
      name,
      {
        ...state,
        ...('fromDate' in state ? { fromDate: 'any' } : {}),
        ...('slack' in state ? { slack: 'any' } : {}),
      },
    ]),
  )

it('the source and the tap send the same records, byte for byte, and the same states', async () => {
  const streams = await discover()
  const airbyte = await read()
  const singer = await createTapRunner(sandbox, files)({})
  for (const { name } of streams) {
    const texts = recordTexts(airbyte.stdout, name)
    expect([name, texts.length]).not.toContain(0)
    expect([name, recordTexts(singer.stdout, name)]).toEqual([name, texts])
  }
  const states = airbyteState(airbyte.stdout).flatMap((state) =>
    state === undefined ? [] : [[state.stream.stream_descriptor.name, state.stream.stream_state] as const],
  )
  expect(withoutClock(singerState(singer.stdout).bookmarks)).toEqual(withoutClock(Object.fromEntries(states)))
})

it('the source and the tap each continue from a state of the other', async () => {
  const fromAirbyte = airbyteState((await read()).stdout)
  const fromSinger = singerState((await createTapRunner(sandbox, files)({})).stdout)
  const singer = await createTapRunner(sandbox, files)({ state: fromAirbyte })
  expect([
    singer.status,
    singerLines(singer.stdout).filter((line) => line.type === 'RECORD' && line.stream !== withoutCursor),
  ]).toEqual([0, []])
  const airbyte = await read(fromSinger)
  expect([
    airbyte.status,
    airbyteLines(airbyte.stdout).filter(({ record }) => record !== undefined && record.stream !== withoutCursor),
  ]).toEqual([0, []])
})
