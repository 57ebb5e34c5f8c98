import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { sourceReadCommand } from '../../../connector/cli/feedback-source'
import { messages } from '../../support/destination'
import { newTempPath, writeTempFile } from '../../support/files'
import { sendJson, startServer } from '../../support/listen'
import { runProgram } from '../../support/program'
import { runCommand } from '../../support/run-command'

const start = '2024-01-01T00:00:00.000Z'
const right = {
  base_url: 'http://127.0.0.1:9',
  credentials: { auth_type: 'access_token', access_token: 'not-for-anybody' },
  start_date: start,
}
const selecting = (name: string) => ({ streams: [{ stream: { name, json_schema: {} }, sync_mode: 'incremental' }] })
const good = { config: writeTempFile(right), catalog: writeTempFile(selecting('reviews')) }

const errors = (stdout: string) =>
  messages(stdout).flatMap(({ trace }) => (trace?.error === undefined ? [] : [trace.error]))
const statuses = (stdout: string) =>
  messages(stdout).flatMap(({ trace }) => (trace?.stream_status === undefined ? [] : [trace.stream_status.status]))
const records = (stdout: string) =>
  messages(stdout).flatMap(({ record }) => (record === undefined ? [] : [record.data]))
const states = (stdout: string) =>
  messages(stdout).flatMap(({ state }) => (state === undefined ? [] : [state.stream.stream_state]))

const nowhere = newTempPath('json')
const cut = writeTempFile('{"base_url": ')
const empty = writeTempFile('')
const misspelt = writeTempFile({ ...right, base_url: 'feedback.example.com', page_size: 5 })

describe.each([
  ['missing', nowhere, /does not exist/],
  ['not JSON', cut, /is not JSON: it ends too early/],
  ['empty', empty, /is not JSON/],
  ['wrong', misspelt, /base_url must be a URL, such as "https:.*page_size .*10 to 1000/],
])('a config that is %s', (_, path, says) => {
  const named = (message: string) => {
    expect(message).toContain(path)
    expect(message).toMatch(says)
  }

  it.concurrent('makes check answer with the status FAILED', async () => {
    const { status, stdout } = await runProgram('source-feedback', ['check', '--config', path])
    expect(status).toBe(0)
    const lines = stdout.trim().split('\n')
    expect(lines).toHaveLength(1)
    const { connectionStatus } = JSON.parse(lines[0] ?? '')
    expect(connectionStatus.status).toBe('FAILED')
    named(connectionStatus.message)
  })

  it.concurrent.each([
    ['discover', ['discover', '--config', path]],
    ['read', ['read', '--config', path, '--catalog', good.catalog]],
  ])('ends %s with a trace', async (_verb, args) => {
    const { status, stdout } = await runProgram('source-feedback', args)
    expect(status).toBe(1)
    expect(errors(stdout)).toMatchObject([{ failure_type: 'config_error' }])
    named(errors(stdout)[0]?.message ?? '')
  })
})

describe('a catalog or a state', () => {
  const old = writeTempFile([
    {
      type: 'STREAM',
      stream: { stream_descriptor: { name: 'reviews' }, stream_state: { modifiedTimeFrom: 'yesterday' } },
    },
  ])
  const unnamed = writeTempFile([{ type: 'STREAM', stream: { stream_state: { modifiedTimeFrom: start } } }])

  it.concurrent.each<[string, Readonly<Record<string, string>>, RegExp]>([
    ['that is no file', { catalog: nowhere }, /catalog file .* does not exist/],
    ['that is cut', { catalog: cut }, /catalog file .* is not JSON/],
    ['without streams', { catalog: writeTempFile({}) }, /streams is missing, expected array/],
    [
      'with a wrong sync mode',
      { catalog: writeTempFile({ streams: [{ stream: { name: 'reviews' }, sync_mode: 'often' }] }) },
      /streams\.0\.sync_mode must be one of full_refresh, incremental/,
    ],
    ['that selects nothing', { catalog: writeTempFile({ streams: [] }) }, /selects no stream/],
    [
      'that asks for an unknown stream',
      { catalog: writeTempFile(selecting('opinions')) },
      /"opinions", which does not exist.*choose among .*reviews/,
    ],
    ['whose state is no file', { state: nowhere }, /state file .* does not exist/],
    ['whose state is cut', { state: cut }, /state file .* is not JSON/],
    ['whose state is no object', { state: writeTempFile([1]) }, /each item must be an object/],
    ['whose state names no stream', { state: unnamed }, /stream\.stream_descriptor is missing/],
    ['whose cursor is no time', { state: old }, /state of reviews is wrong: modifiedTimeFrom/],
  ])('%s ends read with a trace', async (_, given, says) => {
    const before = Object.values(given).map((path) => (path === nowhere ? '' : readFileSync(path, 'utf8')))
    const args = Object.entries({ ...good, ...given }).flatMap(([option, path]) => [`--${option}`, path])
    const { status, stdout } = await runProgram('source-feedback', ['read', ...args])
    expect(status).toBe(1)
    expect(errors(stdout)).toMatchObject([{ failure_type: 'config_error', message: expect.stringMatching(says) }])
    expect(records(stdout)).toEqual([])
    expect(states(stdout)).toEqual([])
    expect(Object.values(given).map((path) => (path === nowhere ? '' : readFileSync(path, 'utf8')))).toEqual(before)
  })
})

const review = { id: 7, modifiedTime: '2024-02-01T00:00:00.000Z', mentionTime: '2024-01-31T00:00:00.000Z', rating: 4 }
type Asked = { readonly modifiedTimeFrom: string; readonly offset: number; readonly limit: number }

/** What `read` says of a service that answers every request of the export with what `body` makes of it. */
const reading = async (body: (asked: Asked) => unknown) => {
  const { url, seen } = await startServer((request, response) =>
    sendJson(response, 200, body(JSON.parse(request.body))),
  )
  const config = writeTempFile({ ...right, base_url: url })
  const { status, stdout } = await runCommand(sourceReadCommand, ['--config', config, '--catalog', good.catalog])
  return { status, stdout, requests: seen.length }
}
const whole =
  (reviews: unknown, filter: object = {}) =>
  (asked: Asked): unknown => ({
    reviews: Array.isArray(reviews) ? reviews.slice(asked.offset) : reviews,
    filter: { ...asked, ...filter },
  })

describe('a response that', () => {
  it.each<[string, (asked: Asked) => unknown, RegExp]>([
    ['is a page in HTML', () => '<html>Please log in</html>', /not JSON|expected/],
    ['is cut short', (asked) => JSON.stringify(whole([review])(asked)).slice(0, -9), /cut short after/],
    [
      'is not UTF-8',
      (asked) => Buffer.from(JSON.stringify(whole([{ ...review, mood: 'gr\xfcn' }])(asked)), 'latin1'),
      /not UTF-8/,
    ],
    ['is empty', () => '', /./],
    ['holds no reviews and no echo', () => ({}), /neither reviews nor filter/],
    ['holds reviews that are no list', whole({ 7: review }), /reviews/],
    ['holds a review without an id', whole([{ ...review, id: undefined }]), /id/],
    ['holds a review whose id is null', whole([{ ...review, id: null }]), /id/],
    ['holds a review whose id is no integer', whole([{ ...review, id: 7.5 }]), /id/],
    ['holds a review without modifiedTime', whole([{ ...review, modifiedTime: undefined }]), /modifiedTime/],
    ['holds a review whose modifiedTime is no time', whole([{ ...review, modifiedTime: 'soon' }]), /modifiedTime/],
    ['holds something else than reviews', whole([7]), /reviews/],
    [
      'echoes another time',
      whole([review], { modifiedTimeFrom: '2020-01-01T00:00:00.000Z' }),
      /modifiedTimeFrom.*requested/,
    ],
    ['echoes another offset', whole([], { offset: 20 }), /offset.*requested/],
    ['is an application error', () => ({ status: { code: 'E17', message: 'no' } }), /code E17/],
  ])('%s is asked for again, then ends the stream with its cursor unmoved', async (_, body, says) => {
    const { status, stdout, requests } = await reading(body)
    expect(status).toBe(1)
    expect(requests).toBe(3)
    expect(errors(stdout)).toMatchObject([{ failure_type: 'transient_error', message: expect.stringMatching(says) }])
    expect(statuses(stdout)).toEqual(['STARTED', 'INCOMPLETE'])
    expect(records(stdout)).toEqual([])
    for (const state of states(stdout)) expect(state).toMatchObject({ modifiedTimeFrom: start })
  })

  it('has an attribute of a wrong type loses only that attribute, which is logged', async () => {
    const { status, stdout } = await reading(
      whole([{ ...review, rating: 'good', location: { id: 'x', name: 'North' } }]),
    )
    expect(status).toBe(0)
    const [line] = stdout.split('\n').filter((text) => text.includes('"RECORD"'))
    expect(JSON.parse(line ?? '').record).toMatchObject({
      data: { id: 7, rating: null, location: { id: null, name: 'North' } },
      meta: {
        changes: [
          { field: 'rating', change: 'NULLED', reason: 'SOURCE_SERIALIZATION_ERROR' },
          { field: 'location.id', change: 'NULLED', reason: 'SOURCE_SERIALIZATION_ERROR' },
        ],
      },
    })
  })

  it('has undeclared attributes keeps them, and each is logged once', async () => {
    const strange = { ...review, mood: 'sunny', location: { id: 1, name: 'North', floor: 3 } }
    const { status, stdout } = await reading(whole([strange, { ...strange, id: 8 }]))
    expect(status).toBe(0)
    expect(records(stdout)).toMatchObject(
      [7, 8].map((id) => ({ id, unknown_attributes: { mood: 'sunny' }, location: { floor: 3 } })),
    )
    for (const path of ['reviews.mood', 'reviews.location.floor'])
      expect(stdout.split(`${path}.`).length - 1, path).toBe(1)
  })
})
