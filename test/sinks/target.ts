import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import { parseJson } from '../../connector/api/json-text'
import type { Columns, Inlet, OpenSink, Sink } from '../../connector/cdk/sink'
import { acceptingApi } from '../../connector/sinks/accepting-api'
import type { Target } from '../../connector/sinks/target'

export const now = Date.parse('2026-06-15T12:00:00Z')

export const targetWith = (more: Partial<Target> = {}): Target => ({
  api: acceptingApi,
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

export const inletOf = (object: string, more: Partial<Inlet> = {}): Inlet => ({
  id: object,
  name: object,
  object,
  key: [['id']],
  columns: O.none,
  deletes: false,
  ...more,
})

export const opened = async (sink: Sink<Target>, target: Target): Promise<OpenSink<unknown>> => {
  const open = await sink.open(target)()
  if (E.isLeft(open)) throw new Error(open.left.message)
  return open.right
}

/** What a sink makes of a record: its item, or the text of why not. */
export const prepared = (open: OpenSink<unknown>, inlet: Inlet, record: unknown): unknown => {
  const prepare = open.prepare(inlet)
  if (E.isLeft(prepare)) return prepare.left.message
  const result = prepare.right(parseJson(typeof record === 'string' ? record : JSON.stringify(record)) as Columns)
  return E.isLeft(result) ? result.left : result.right.item
}
