import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import { parseExactJson } from '../../connector/cdk/json/exact'
import type { InputRecord, InputStream, OpenSink, Sink } from '../../connector/cdk/sink'
import { dryRunApi, type SinkTarget } from '../../connector/sinks/target'

export const now = Date.parse('2026-06-15T12:00:00Z')

export const createTestTarget = (more: Partial<SinkTarget> = {}): SinkTarget => ({
  api: dryRunApi,
  resend: () => (effect) => effect,
  mapping: { visit_records: {}, locations: {} },
  now: () => now,
  maxVisitAge: 30 * 86_400_000,
  ledger: O.none,
  maxDeactivationsPercent: 10,
  dryRun: false,
  warn: () => undefined,
  ...more,
})

export const createTestInlet = (object: string, more: Partial<InputStream> = {}): InputStream => ({
  id: object,
  name: object,
  objectName: object,
  key: [['id']],
  columns: O.none,
  isDeletion: false,
  ...more,
})

export const openSink = async (sink: Sink<SinkTarget>, target: SinkTarget): Promise<OpenSink<unknown>> => {
  const open = await sink.open(target)()
  if (E.isLeft(open)) throw new Error(open.left.message)
  return open.right
}

/** What a sink makes of a record: its item, or the text of why not. */
export const prepareRecord = (open: OpenSink<unknown>, inlet: InputStream, record: unknown): unknown => {
  const prepare = open.prepare(inlet)
  if (E.isLeft(prepare)) return prepare.left.message
  const result = prepare.right(
    parseExactJson(typeof record === 'string' ? record : JSON.stringify(record)) as InputRecord,
  )
  return E.isLeft(result) ? result.left : result.right.item
}
