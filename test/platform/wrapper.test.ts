import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { newTempPath } from '../support/files'
import { startContainer } from './container'
import { containerScript } from './model/containers'

/** Runs the script of a command without pipes to its end. */
const run = (entrypoint: string | undefined) => {
  const folder = newTempPath('container')
  mkdirSync(folder)
  const { AIRBYTE_ENTRYPOINT: _, ...env } = process.env
  const given = entrypoint === undefined ? {} : { AIRBYTE_ENTRYPOINT: entrypoint }
  const { status } = spawnSync('sh', ['-c', containerScript('spec', { folder, pollSeconds: 0.1 })], {
    env: { ...env, ...given },
    stdio: 'ignore',
  })
  const file = join(folder, 'exitCode.txt')
  return { status, folder, exitFile: existsSync(file) ? readFileSync(file, 'utf8') : undefined }
}

it('ends with 127 and without an exit file where the image names no AIRBYTE_ENTRYPOINT', () => {
  expect(run(undefined)).toMatchObject({ status: 127, exitFile: undefined })
})

it.each([
  [0, 'true'],
  [3, 'sh -c "exit 3"'],
  [137, "sh -c 'kill -9 $$'"],
])('passes the status %i on: in the file, by a rename, and as its own', (status, entrypoint) => {
  const ended = run(entrypoint)
  expect([ended.status, ended.exitFile]).toEqual([status, `${status}\n`])
  expect(readdirSync(ended.folder).sort()).toEqual(['exitCode.txt', 'jobOutput.json'])
})

it('evaluates the entrypoint: its own arguments come before those of the command', async () => {
  const container = startContainer({ verb: 'spec', connector: { entrypoint: 'echo "two  words"', config: {} } })
  const lines: string[] = []
  for await (const line of container.lines) lines.push(line)
  expect([lines, await container.ended]).toEqual([['two  words spec'], 0])
})

it('opens stderr, stdout and stdin in this order, and none of them for a command whose output is a file', () => {
  const scriptOf = (verb: 'write' | 'read' | 'check') => containerScript(verb, { folder: '/f' })
  expect(scriptOf('write')).toContain('/f/catalog.json" 2> stderr > stdout < stdin) &')
  expect(scriptOf('read')).toContain('/f/catalog.json" 2> stderr > stdout) &')
  expect(scriptOf('check')).toContain('/f/connectionConfiguration.json" > jobOutput.json) &')
})

it('gives --state only where a state is kept', async () => {
  const argumentsWith = async (files: Readonly<Record<string, unknown>>) => {
    const container = startContainer({ verb: 'read', connector: { entrypoint: 'echo', config: {} }, files })
    const lines: string[] = []
    for await (const line of container.lines) lines.push(line.replaceAll(container.folder, '/source'))
    return lines
  }
  const command = 'read --config /source/connectorConfig.json --catalog /source/catalog.json'
  expect(await argumentsWith({ 'catalog.json': {} })).toEqual([command])
  expect(await argumentsWith({ 'catalog.json': {}, 'inputState.json': [] })).toEqual([
    `${command} --state /source/inputState.json`,
  ])
})

it('kills a connector once the file TERMINATED is there', async () => {
  const container = startContainer({ verb: 'read', connector: { entrypoint: 'exec sleep 600 #', config: {} } })
  container.terminate()
  expect(await container.ended).toBe(143)
})

it('runs with the variables of the job and what goes to stderr apart', async () => {
  const container = startContainer({
    verb: 'read',
    connector: { entrypoint: `sh -c 'echo "$WORKER_JOB_ID $WORKER_JOB_ATTEMPT"; pwd >&2'`, config: {} },
    job: { id: 7, attempt: 2 },
  })
  const lines: string[] = []
  for await (const line of container.lines) lines.push(line)
  expect([lines, await container.ended, container.stderr()]).toEqual([['7 1'], 0, `${container.folder}\n`])
})
