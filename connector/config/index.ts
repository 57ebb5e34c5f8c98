/**
 * What a user writes: the configurations of source and destination, declared once as codecs. From a codec come the form
 * that platforms draw (spec/*.json), the defaults, and messages that name each wrong key. In goes a value; out comes a
 * typed configuration, or a failure that says what would be right.
 */
export type { ConnectionConfig, LocationLookupConfig, LookupPagingConfig } from './connection'
export { createDestinationFormat, type DestinationConfig, rejectAction } from './destination'
export { type SourceConfig, sourceFormat } from './source'
