/** The room config. */
export { ConnectionConfig } from './connection'
export { DestinationConfig, destinationDocumentationUrl, destinationSpec } from './destination'
export {
  addFilePath,
  configOption,
  getOrThrow,
  loadAirbyteCatalog,
  loadAirbyteState,
  loadDestinationConfig,
  loadDestinationConfigs,
  loadSourceConfig,
  loadSourceConfigs,
  runOrThrow,
} from './load'
export { decodeSourceConfig, SourceConfig, sourceDocumentationUrl, sourceSpec } from './source'
