/**
 * The kit for connectors; it knows no service. Input: the streams and sinks that a connector defines, a catalog,
 * states, and lines of Airbyte or Singer. Output: the messages of a run. `readStreams` yields them, a protocol encodes
 * them into lines and decodes lines into them, and `writeToSinks` sends their records to sinks. A protocol is a folder,
 * and a row of `protocols`.
 *
 * To write your own connector (see examples/), import this index as `feedback-connector/cdk`:
 * - codecs of values: `Int64`, `Integer`, `Instant`
 * - programs: `runSource`, `SourceDeclaration`; step by step `SourceProgram`, `consumeMessages`, `runProgram`
 * - streams: `defineStream`, `Stream`, `Reader`, `StreamRequest`, `ReaderEvent`, `encodeRow`, `pickAttributes`
 * - sinks: `defineSink`, `Sink`, `OpenSink`, `BatchAnswer`, `RecordVerdict`
 * - runs: `readStreams`, `ReadRun`, `writeToSinks`, `WriteRun`, `openDeadLetterFile`; their messages: `Message`, `Row`
 * - protocols: `protocols`, `Protocol`, `decodeInput`; catalogs: `Catalog`, `ConfiguredCatalog`
 * - configuration: `textField`, `integerField`, … of config/fields, `createConfigFormat`, `loadConfig`
 * - feeds: `unfoldFeed`, `flatMapFeed`, …; failures: `configFailure`, `transientFailure`, `systemFailure`; schemas:
 *   `toJsonSchema`
 * The other names are internal to this connector and may change.
 */
export { takeUntilAbort } from './abort'
export {
  decodeConfiguredCatalog,
  destinationCatalogLine,
  destinationSpecLine,
  selectAllStreams,
} from './airbyte/catalog'
export { connectionStatusLine, encodeAirbyte } from './airbyte/encode'
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
} from './config/fields'
export { type ConfigFormat, createConfigFormat } from './config/format'
export { loadCatalogFile, loadConfig } from './config/load'
export {
  configFailure,
  type Failure,
  pathFailure,
  systemFailure,
  transientFailure,
  unreadableFailure,
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
  unfoldFeed,
} from './feed'
export { decodeInput, decodeMixedInput } from './input'
export { fitsDouble, parseExactJson, printExactJson, printJsonText } from './json/exact'
export { readMembersAt, readObjectMembers, stringAt } from './json/members'
export { parseJson } from './json/parse'
export { decodeValue, formatIssues } from './json/validate'
export { joinText } from './lines'
export type {
  Derivation,
  InputRecord,
  LogLevel,
  Message,
  NamesDerivation,
  PartStep,
  RecordChange,
  Row,
  SharedRecords,
  StreamInfo,
  SyncMode,
} from './message'
export { type Command, type CommandIo, consumeFeed, defineCommand } from './program/command'
export { CommandError, getOrThrow, runOrThrow, usageError } from './program/error'
export {
  airbyteConventions,
  describeFailure,
  failureStatus,
  personConventions,
  singerConventions,
} from './program/exit'
export { setHeapGrowth } from './program/heap'
export { findNearestName, suggestName } from './program/names'
export { type CommandOption, type CommandOptions, type ParsedOptions, parseOptions } from './program/options'
export { runProgram } from './program/program'
export { progressDelay } from './program/progress'
export type { Program } from './program/run-command'
export type { LogEntry, Protocol } from './protocol'
export { protocols } from './protocols'
export { createRedactor, redactFailure } from './redact'
export { runSource, type SourceDeclaration } from './run-source'
export { Instant, Int64, Integer, toInstant, toMillis } from './scalar'
export { annotate, annotationsOf, defined, type JsonSchema, mapDefined, toJsonSchema } from './schema'
export {
  createSingerLogger,
  printDescription,
  requireConfigPaths,
  type SingerProgram,
  singerConfigNotes,
  singerConfigOption,
  singerOptions,
  withLoggedWarnings,
} from './singer/command-line'
export { createTapCommand } from './singer/tap-command'
export {
  type BatchAnswer,
  defineSink,
  type FinalItems,
  type InputExtent,
  type InputStream,
  type OpenSink,
  type PreparedItem,
  type RecordVerdict,
  type Sink,
  type SinkNote,
} from './sink'
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
export { formatStateFile } from './state-file'
export {
  defineStream,
  encodeRow,
  type HoldsRows,
  type Projection,
  pickAttributes,
  type Reader,
  type ReaderEvent,
  type Stream,
  type StreamRequest,
  tombstoneColumnNames,
} from './stream'
export {
  copyDeadLetters,
  noDeadLetters,
  openDeadLetterFile,
  syncFolder,
} from './write/dead-letters'
export { countReasons } from './write/reasons'
export { hasOnlyRejections, rejectionRemedy } from './write/reject-policy'
export { openResend } from './write/resend'
export { type WriteResult, type WriteRun, writeToSinks } from './write/write'
