import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import type { Message, StreamInfo, SyncMode } from '../../connector/cdk/message'
import { type SaveOptions, saveTo } from '../../connector/snapshot/save'
import { openSnapshot, type Snapshot } from '../../connector/snapshot/snapshot'

export const open = async (): Promise<Snapshot> => {
  const opened = await openSnapshot(':memory:')()
  if (E.isLeft(opened)) throw new Error(opened.left.message)
  return opened.right
}

export const integer = { type: 'integer' }
export const instant = { type: 'string', format: 'date-time' }
export const info = (
  name: string,
  properties: Record<string, unknown>,
  primaryKey: ReadonlyArray<string>,
  cursor: string,
  syncMode: SyncMode = 'incremental',
): StreamInfo => ({ name, schema: { type: 'object', properties }, primaryKey, cursor: O.some(cursor), syncMode })

export const reviewShape = {
  id: integer,
  modifiedTime: instant,
  rating: { type: ['null', 'number'] },
  location: { type: ['null', 'object'] },
  text: { type: ['null', 'string'] },
}
export const reviews = (mode?: SyncMode) => info('reviews', reviewShape, ['id'], 'modifiedTime', mode)
export const deleted = (mode?: SyncMode) =>
  info('deleted_reviews', { id: integer, modifiedTime: instant }, ['id'], 'modifiedTime', mode)
export const contents = (mode?: SyncMode) =>
  info(
    'review_contents',
    { reviewId: integer, reviewModifiedTime: instant, id: integer },
    ['reviewId', 'id'],
    'reviewModifiedTime',
    mode,
  )

export const at = Date.parse('2026-01-02T00:00:00Z')
export const time = (minute: number) => `2026-01-01T00:${String(minute).padStart(2, '0')}:00.000Z`
export const rows = (stream: string, ...texts: string[]): Message => ({
  _tag: 'Records',
  stream,
  at,
  rows: texts.map((text) => ({ json: Buffer.from(text) })),
})
export const review = (id: number, minute: number, text = '') =>
  JSON.stringify({ id, modifiedTime: time(minute), ...(text === '' ? {} : { text }) })
export const content = (reviewId: number, minute: number, id: number) =>
  JSON.stringify({ reviewId, reviewModifiedTime: time(minute), id })
export const started = (stream: StreamInfo): Message => ({ _tag: 'Started', stream })
export const state = (stream: string, state: unknown, count = 0): Message => ({
  _tag: 'Checkpoint',
  stream,
  state,
  count,
})
export const finished = (stream: string): Message => ({ _tag: 'Finished', stream })

export const save = async (
  snapshot: Snapshot,
  messages: ReadonlyArray<Message>,
  options: Partial<SaveOptions> = {},
) => {
  const saver = await saveTo(snapshot, { now: () => at, ...options })
  for (const message of messages) await saver.write(message)
  return saver.finish()
}

export const whole = (stream: StreamInfo, ...texts: string[]): Message[] => [
  started(stream),
  ...(texts.length === 0 ? [] : [rows(stream.name, ...texts)]),
  state(stream.name, { cursor: texts.length }, texts.length),
  finished(stream.name),
]
