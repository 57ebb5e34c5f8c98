import type { Derivation, StreamInfo } from '../../cdk'
import type { Database } from '../store/database'
import { forgottenRecordsSql } from '../store/forgotten'
import type { LoadStatus } from '../store/metadata'
import type { Column, Table } from '../store/tables'
import { findColumn } from './evolve'
import { createSpool, type Spool } from './spool'
import type { LoadTarget } from './target'

/** One stream in one run: its row in `_loads`, and what it has received but not committed yet. */
export type Load = {
  readonly id: number | bigint
  readonly stream: string
  /** How its rows are made from reviews, if these are received once for several streams. */
  readonly derivation: Derivation | undefined
  /** As text, to detect changes when a stream is declared again. */
  readonly schema: string
  table: Table
  target: LoadTarget
  /** The next commit removes the rows of older generations. */
  activatesGeneration: boolean
  readonly cursor: Column | undefined
  /** Milliseconds since 1970. */
  readonly startedAt: number
  endedAt: number | undefined
  status: LoadStatus
  /** How many of its own records it has received. */
  records: number
  /** How many of its rows commits have made from reviews. */
  made: number
  /** Undefined if the source does not count its records. */
  sourceRecords: number | undefined
  /** The records waiting for the next commit. */
  spool: Spool
  /** The text of the last state received since the last commit started. It covers the rows received before it. */
  state: string | undefined
  /** Something was received since the last commit started. */
  hasChanges: boolean
}

/** A load that has received nothing. `forgets`: records may belong to forgotten persons. */
export const createLoad = (
  { path }: Database,
  id: Load['id'],
  info: StreamInfo,
  { table, target, forgets }: { readonly table: Table; readonly target: LoadTarget; readonly forgets: boolean },
  now: number,
): Load => ({
  id,
  stream: info.name,
  derivation: info.derivation,
  schema: JSON.stringify(info.schema),
  table,
  target,
  activatesGeneration: false,
  cursor: target.cursor === undefined ? undefined : findColumn(table, target.cursor),
  startedAt: now,
  endedAt: undefined,
  status: 'running',
  records: 0,
  made: 0,
  sourceRecords: undefined,
  spool: createSpool(path, forgets ? forgottenRecordsSql(info.name) : undefined),
  state: undefined,
  hasChanges: false,
})

/** The result of one stream's load. */
export type LoadSummary = {
  readonly stream: string
  readonly status: LoadStatus
  readonly records: number
  readonly seconds: number
}

export const summarizeLoad = (
  { stream, status, records, made, startedAt, endedAt }: Load,
  now: number,
): LoadSummary => ({
  stream,
  status,
  records: records + made,
  seconds: ((endedAt ?? now) - startedAt) / 1000,
})
