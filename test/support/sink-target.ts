import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import { parseExactJson } from '../../connector/cdk/json/exact'
import type { InputRecord } from '../../connector/cdk/message'
import type { InputStream, OpenSink, Sink } from '../../connector/cdk/sink'
import { dryRunApi, type SinkTarget } from '../../connector/sinks/target'

/** The time of the test target's clock, in milliseconds. */
export const now = Date.parse('2026-06-15T12:00:00Z')

/** A target that sends nothing, accepts everything and has no mapping. */
export const createTestTarget = (more: Partial<SinkTarget> = {}): SinkTarget => ({
  api: dryRunApi,
  resend: () => (effect) => effect,
  mapping: { visit_records: {}, locations: {} },
  mapByName: false,
  now: () => now,
  maxVisitAge: 30 * 86_400_000,
  ledger: O.none,
  maxDeactivationsPercent: 10,
  dryRun: false,
  rejectedCodes: new Set(),
  warn: () => undefined,
  inform: () => undefined,
  ...more,
})

/** A stream of the object's name with the primary key `id`. */
export const createTestStream = (object: string, more: Partial<InputStream> = {}): InputStream => ({
  id: object,
  name: object,
  objectName: object,
  key: [['id']],
  columns: O.none,
  isDeletion: false,
  ...more,
})

export const openSink = async (sink: Sink<SinkTarget>, target: SinkTarget): Promise<OpenSink<unknown>> => {
  const opened = await sink.open(target)()
  if (E.isLeft(opened)) throw new Error(opened.left.message)
  return opened.right
}

/** The item that a sink makes of a record, given as a value or as JSON text; or the reason why it rejects it. */
export const prepareRecord = (sink: OpenSink<unknown>, stream: InputStream, record: unknown): unknown => {
  const prepare = sink.prepare(stream)
  if (E.isLeft(prepare)) return prepare.left.message
  const result = prepare.right(
    parseExactJson(typeof record === 'string' ? record : JSON.stringify(record)) as InputRecord,
  )
  return E.isLeft(result) ? result.left : result.right.item
}
