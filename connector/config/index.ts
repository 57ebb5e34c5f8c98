/**
 * What a user writes: the configurations of source and destination, declared once as codecs. From a codec come the form that
 * platforms draw (spec/*.json), the defaults, and messages that name each wrong key. In go the paths of files or the
 * environment; out comes a typed configuration, catalog or state, or a failure that says what would be right.
 */
export type { ConnectionConfig } from './connection'
export { createDestinationFormat, type DestinationConfig } from './destination'
export type { ConfigFormat } from './format'
export { addFilePath, loadAirbyteCatalog, loadAirbyteState, loadConfig } from './load'
export { type SourceConfig, sourceFormat } from './source'
