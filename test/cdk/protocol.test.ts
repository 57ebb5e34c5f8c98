import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import * as t from 'io-ts'
import { describe, expect, it } from 'vitest'
import { toConfiguredStream } from '../../connector/cdk/catalog'
import { decodeInput } from '../../connector/cdk/input'
import { JsonText, parseExactJson, printJsonText } from '../../connector/cdk/json/exact'
import { joinText } from '../../connector/cdk/lines'
import type { InputRecord, Message } from '../../connector/cdk/message'
import { emptyOutput, type Protocol } from '../../connector/cdk/protocol'
import { protocols } from '../../connector/cdk/protocols'
import { readStreams } from '../../connector/cdk/read'
import type { OpenSink } from '../../connector/cdk/sink'
import { defineStream, type Reader } from '../../connector/cdk/stream'
import { noDeadLetters } from '../../connector/cdk/write/dead-letters'
import { writeToSinks } from '../../connector/cdk/write/write'
import { decodeForSnapshot, inChunks } from '../support/decoded-input'

/**
 * A third protocol: `+stream` starts a stream, `stream TAB record` is a record, `#stream TAB state` a state and
 * `!stream` the end of a stream.
 */
const toy: Protocol = {
  name: 'toy',
  recognizes: (bytes) => bytes[0] === 0x2b,
  createEncoder: () => ({
    encode: (message) => ({ ...emptyOutput, lines: toyLines(message).map((line) => `${line}\n`) }),
    end: () => emptyOutput,
  }),
  createDecoder: () => ({ decode: ({ bytes }) => E.right([toyMessage(bytes)]), end: () => [] }),
}

const toyLines = (message: Message): ReadonlyArray<string> => {
  if (message._tag === 'Started') return [`+${message.stream.name}`]
  if (message._tag === 'Records') return message.rows.map(({ json }) => `${message.stream}\t${Buffer.from(json)}`)
  if (message._tag === 'Checkpoint') return [`#${message.stream}\t${printJsonText(message.state)}`]
  return message._tag === 'Finished' ? [`!${message.stream}`] : []
}

const toyMessage = (line: Buffer): Message => {
  const [head = '', body = ''] = line.toString().split('\t')
  const stream = head.slice(1)
  const info = { name: stream, schema: {}, primaryKey: ['id'], cursor: O.none, syncMode: 'incremental' } as const
  if (head.startsWith('+')) return { _tag: 'Started', stream: info }
  if (head.startsWith('#')) return { _tag: 'Checkpoint', stream, state: new JsonText(body), count: Number.NaN }
  if (head.startsWith('!')) return { _tag: 'Finished', stream, extent: 'changes' }
  const json = line.subarray(line.indexOf('\t') + 1)
  const value = parseExactJson(json.toString()) as InputRecord
  return { _tag: 'Records', stream: head, rows: [{ json, value }], at: 0 }
}

const reader: Reader<unknown, string> = {
  name: 'fixed',
  read: () =>
    async function* (requests) {
      for (const { stream, project } of requests) {
        for (const [index, json] of ['{"id":1}', '{"id":9007199254740993}', '{"id":3}'].entries()) {
          yield E.right({ _tag: 'Rows', stream, rows: project(json) })
          if (index > 0) yield E.right({ _tag: 'Checkpoint', stream, state: () => ({ after: index }) })
        }
      }
    },
}
const streams = ['things', 'places'].map((name) =>
  defineStream({
    name,
    codec: t.type({ id: t.number }),
    primaryKey: ['id'],
    cursor: 'id',
    reader,
    project: (json) => [{ json: Buffer.from(json) }],
  }),
)

const readMessages = () =>
  readStreams({
    streams,
    env: {},
    catalog: streams.map(({ name }) => ({ name, syncMode: 'incremental', attributes: O.none })),
    state: {},
    now: () => 0,
    checkpointInterval: { records: 1, millis: 1e9 },
    stop: new AbortController().signal,
    onWait: () => () => undefined,
  })

/** What a run prints in a protocol. */
const printRun = async (protocol: Protocol): Promise<string> => {
  const encoder = protocol.createEncoder({ now: () => 0 })
  const lines: Array<string> = []
  for await (const message of readMessages()) lines.push(...encoder.encode(message).lines.map(joinText))
  return [...lines, ...encoder.end().lines.map(joinText)].join('')
}

/** Each record of the messages, and each stream with its last state; `finished`: the streams that ended. */
const contentOf = (messages: ReadonlyArray<Message>) => {
  const records: Array<string> = []
  const states = new Map<string, unknown>()
  const finished = new Set<string>()
  for (const message of messages) {
    if (message._tag === 'Records')
      records.push(...message.rows.map(({ json }) => `${message.stream} ${Buffer.from(json)}`))
    if (message._tag === 'Checkpoint') states.set(message.stream, JSON.parse(printJsonText(message.state)))
    if (message._tag === 'SharedCheckpoint')
      for (const { stream, state } of message.states) states.set(stream, JSON.parse(printJsonText(state)))
    if (message._tag === 'Finished') finished.add(message.stream)
  }
  return { records, states: Object.fromEntries(states), finished: [...finished].sort() }
}

const table: ReadonlyArray<Protocol> = [...Object.values(protocols), toy]

describe.each(table.map((protocol) => [protocol.name, protocol] as const))('the protocol %s', (_, protocol) => {
  it('carries the records, states and ends of a run; the input alone shows which protocol it is', async () => {
    const written: Array<Message> = []
    for await (const message of readMessages()) written.push(message)
    const catalog = streams.map((stream) => toConfiguredStream(stream, 'incremental'))
    const printed = Buffer.from(await printRun(protocol))
    const { messages, refused } = await decodeForSnapshot(inChunks(printed, 100), catalog, table)
    expect(refused).toBeUndefined()
    expect(contentOf(written).records).toHaveLength(6)
    expect(contentOf(messages)).toEqual(contentOf(written))
  })
})

describe('a third protocol', () => {
  it('is written to sinks, and its states are printed back', async () => {
    const written: Array<unknown> = []
    const sink: OpenSink<unknown> = {
      prepare: () => E.right((record) => E.right({ item: record, key: String(record.id) })),
      write: (items) => async () => {
        written.push(...items)
        return E.right({ _tag: 'Verdicts', verdicts: items.map(() => ({ _tag: 'Accepted' })) })
      },
      isReachable: async () => true,
      finish: () => E.right({ items: [], notes: [] }),
    }
    const encoder = toy.createEncoder({ now: () => 0 })
    const lines: Array<string> = []
    const printed = Buffer.from(await printRun(toy))
    const { failures } = await writeToSinks({
      input: () => decodeInput(toy, { purpose: 'deliver', now: () => 0 })(inChunks(printed, 100)),
      streams: [],
      saysEndings: false,
      sinks: new Map(streams.map(({ name }) => [name, sink])),
      policy: { onReject: 'fail', maxPercent: 0 },
      batch: { count: 10, bytes: 1e6, millis: 1e6 },
      inFlight: 1,
      deadLetters: noDeadLetters,
      emit: async (checkpoint) => {
        lines.push(...encoder.encode(checkpoint).lines.map(joinText))
      },
      log: () => undefined,
      now: () => 0,
      setTimer: () => () => undefined,
      stop: new AbortController().signal,
    })
    expect(failures).toEqual([])
    expect(written).toHaveLength(6)
    expect(written).toContainEqual({ id: 9007199254740993n })
    expect(lines).toEqual([
      '#things\t{"after":1}\n',
      '#places\t{"after":1}\n',
      '#places\t{"after":2}\n',
      '#things\t{"after":2}\n',
    ])
  })
})
