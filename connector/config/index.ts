/**
 * What a user writes: the configurations of source and destination, declared once as codecs. A codec yields the form
 * that platforms show (spec/*.json), the defaults, and messages that name each wrong key. Input: a value. Output: a
 * typed configuration, or a failure that says what would be right.
 */
export type { ConnectionConfig, LocationLookupConfig, LookupPagingConfig } from './connection'
export { createDestinationFormat, type DestinationConfig, rejectAction } from './destination'
export { type SourceConfig, sourceFormat } from './source'
