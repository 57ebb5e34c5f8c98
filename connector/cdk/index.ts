/**
 * The kit for connectors; it knows no service. In go the streams and sinks that a connector defines, a catalog, states, and the
 * lines of Airbyte or Singer. Out come the messages of a run: `readStreams` yields them, a protocol encodes them into lines and
 * decodes lines back into them, and `writeToSinks` sends their records to sinks. A protocol is a folder and a row of `protocols`.
 *
 * For a connector of its own (see examples/), package.json exports this index as `feedback-connector/cdk`:
 * - codecs of values: `Int64`, `Integer`, `Instant`
 * - programs: `runSource`, `SourceDeclaration`; step by step `SourceProgram`, `consumeMessages`, `runProgram`
 * - streams: `defineStream`, `Stream`, `Reader`, `StreamRequest`, `ReaderEvent`, `encodeRow`, `pickAttributes`
 * - sinks: `defineSink`, `Sink`, `OpenSink`, `BatchAnswer`, `RecordVerdict`
 * - runs: `readStreams`, `ReadRun`, `writeToSinks`, `WriteRun`, `openDeadLetterFile`; what they say: `Message`, `Row`
 * - protocols: `protocols`, `Protocol`, `decodeInput`; catalogs: `Catalog`, `ConfiguredCatalog`
 * - configuration: `textField`, `integerField`, … of config-fields, `createConfigFormat`, `loadConfig`
 * - feeds: `unfoldFeed`, `flatMapFeed`, …; failures: `configFailure`, `transientFailure`, `systemFailure`; schemas: `toJsonSchema`
 * The other names serve the rooms of this connector and may change.
 */
export {
  decodeConfiguredCatalog,
  destinationCatalogLine,
  destinationSpecLine,
  selectAllStreams,
} from './airbyte/catalog'
export { connectionStatusLine, encodeAirbyte, errorTraceLine } from './airbyte/encode'
export {
  configOptionFor,
  configuredCatalogOption,
  createAirbyteSourceCommands,
  loadAirbyteState,
} from './airbyte/source-commands'
export {
  assignObjects,
  type Catalog,
  type ConfiguredCatalog,
  type ConfiguredStream,
  findStreamById,
  findStreamByTable,
  indexByTable,
  type SourceState,
  toConfiguredStream,
  toInputStream,
} from './catalog'
export {
  type Command,
  CommandError,
  type CommandIo,
  type CommandOption,
  type CommandOptions,
  consumeFeed,
  defineCommand,
  findNearestName,
  formatHelp,
  getOrThrow,
  type ParsedOptions,
  parseOptions,
  progressDelay,
  runOrThrow,
  suggestName,
  usageError,
} from './command'
export {
  describeField,
  enumField,
  fieldWithDefault,
  integerField,
  listField,
  numberField,
  oneOfField,
  optionalField,
  optionalGroupField,
  orderFields,
  patternField,
  sectionField,
  switchedGroupField,
  textField,
  timeField,
} from './config-fields'
export {
  configFailure,
  createRedactor,
  type Failure,
  findSecrets,
  pathFailure,
  redactFailure,
  systemFailure,
  transientFailure,
  unexpectedFailure,
} from './failure'
export {
  batchFeed,
  chainEffect,
  concatFeed,
  drainFeed,
  type Feed,
  type FeedStep,
  feedOf,
  flatMapFeed,
  flatMapFeedEither,
  mapFeedFailure,
  takeUntilAbort,
  unfoldFeed,
} from './feed'
export {
  decodeValue,
  fitsDouble,
  JsonText,
  parseExactJson,
  parseJson,
  printExactJson,
  printJsonText,
  readMembersAt,
  readObjectMembers,
  stringAt,
} from './json/decode'
export {
  createRangeEstimate,
  createStdoutWriter,
  formatTimeLeft,
  joinText,
  type LineEditor,
  type RangeEstimate,
  splitLines,
  type TimeRange,
} from './lines'
export {
  addFilePath,
  type ConfigFormat,
  createConfigFormat,
  loadConfig,
  mergeConfigs,
  readConfigFromEnvironment,
  readJsonFile,
  readStateFile,
} from './load'
export {
  airbyteConventions,
  describeFailure,
  failureStatus,
  type Program,
  personConventions,
  type ReportFailure,
  reportAirbyteFailure,
  runProgram,
  setHeapGrowth,
  singerConventions,
} from './program'
export { decodeInput, decodeMixedInput, type LogEntry, type Protocol, type ProtocolOutput } from './protocol'
export { type CheckpointInterval, type ReadRun, readStreams } from './read'
export { protocols, runSource, type SourceDeclaration } from './run-source'
export { Instant, Int64, Integer, toInstant, toMillis } from './scalar'
export { annotate, annotationsOf, defined, type JsonSchema, mapDefined, toJsonSchema } from './schema'
export { decodeSingerCatalog, describeSingerStream, formatSingerCatalog } from './singer/catalog'
export {
  createSingerLogger,
  formatJsonLog,
  formatPlainLog,
  printDescription,
  requireConfigPaths,
  type SingerProgram,
  singerConfigNotes,
  singerConfigOption,
  singerOptions,
  withLoggedWarnings,
} from './singer/command-line'
export { metricLogEntry } from './singer/encode'
export { createTapCommand } from './singer/tap-command'
export {
  checkStateServices,
  consumeMessages,
  identifyService,
  isSameService,
  type MessageConsumer,
  type MessageCopy,
  type OpenSource,
  type ReadOutcome,
  type ServiceIdentity,
  type SourceProgram,
  serviceOfState,
} from './source-program'
export { decodeAirbyteState, decodeSingerState, formatStateFile, type SingerState } from './state-file'
export {
  type BatchAnswer,
  type Derivation,
  defineSink,
  defineStream,
  encodeRow,
  type FinalItems,
  type HoldsRows,
  type InputExtent,
  type InputRecord,
  type InputStream,
  type LogLevel,
  type Message,
  type OpenSink,
  type PartStep,
  type PreparedItem,
  type Projection,
  pickAttributes,
  type Reader,
  type ReaderEvent,
  type RecordChange,
  type RecordVerdict,
  type Row,
  type SharedRecords,
  type Sink,
  type SinkNote,
  type Stream,
  type StreamInfo,
  type StreamRequest,
  type SyncMode,
  tombstoneColumnNames,
} from './stream'
export {
  copyDeadLetters,
  hasOnlyRejections,
  noDeadLetters,
  openDeadLetterFile,
  rejectionRemedy,
  syncFolder,
} from './write/dead-letters'
export { countReasons } from './write/reasons'
export { openResend } from './write/resend'
export { type WriteResult, type WriteRun, writeToSinks } from './write/write'
