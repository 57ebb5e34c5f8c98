import { existsSync } from 'node:fs'
import * as O from 'fp-ts/Option'
import {
  createAirbyteSourceCommands,
  createTapCommand,
  defined,
  getOrThrow,
  type Message,
  type MessageCopy,
  runOrThrow,
  type ServiceIdentity,
  type SourceProgram,
  type Stream,
} from '../cdk'
import { type SourceConfig, sourceFormat } from '../config'
import type { SourceEnv } from '../streams'
import { readPackageVersion } from './options'

/** Loaded when a command runs, because `spec` and `--help` do not need the HTTP client. */
const loadRuntime = () => import('../runtime/index.js')

/** Loaded only for a copy, because it loads DuckDB, which doubles the start time of a command. */
const loadSnapshotRoom = () => import('../snapshot/index.js')
const loadLakeRoom = () => import('../lake/index.js')

/** The columns in which the protocols mark a deleted row. */
const deletedAtColumns = { airbyte: '_ab_cdc_deleted_at', singer: '_sdc_deleted_at' } as const

/** How many messages may be kept in memory before a copy's file is created. */
const maxWaitingMessages = 100

/**
 * Also writes the messages of a run into a DuckDB file, the config's `snapshot_path`. A new file is created with the
 * first rows or the end of a stream, so that a run that fails at once, for example because of a wrong token, creates
 * none.
 */
const openSnapshotCopy = async (
  path: string,
  service: ServiceIdentity,
  reportingTimeZone?: string,
): Promise<MessageCopy> => {
  const { claimSnapshot, createSnapshotWriter, isLakePath, openSnapshot, setReportingTimeZone } =
    await loadSnapshotRoom()
  const lake = isLakePath(path) ? await loadLakeRoom() : undefined
  const open = async () => {
    const snapshot = await runOrThrow((lake?.openLake ?? openSnapshot)(path))
    await claimSnapshot(snapshot, service, 'refuse')
    if (reportingTimeZone !== undefined) await setReportingTimeZone(snapshot, reportingTimeZone)
    const loader = await lake?.createLakeLoader(snapshot, undefined, Date.now())
    return { snapshot, writer: await createSnapshotWriter(snapshot, { now: Date.now, loader }) }
  }
  let opened = existsSync(path) ? await open() : undefined
  let waiting: ReadonlyArray<Message> = []
  return {
    write: async (message) => {
      if (opened !== undefined) return opened.writer.write(message)
      waiting = [...waiting, message]
      const isWorthFile = message._tag === 'Records' || message._tag === 'Finished'
      if (!isWorthFile && waiting.length <= maxWaitingMessages) return
      opened = await open()
      for (const each of waiting) await opened.writer.write(each)
      waiting = []
    },
    holdsRows: async (streams) => opened !== undefined && (await opened.writer.holdsRows(streams)),
    finish: async () => {
      await opened?.writer.finish()
      opened?.snapshot.db.close()
    },
  }
}

/** The Feedback Data Service, as the commands of both protocols read it. */
export const feedbackSource: SourceProgram<SourceConfig, SourceEnv> = {
  name: 'feedback',
  subject: 'the Feedback Data Service',
  version: readPackageVersion,
  format: sourceFormat,
  listStreams: async (protocol, config) =>
    config === undefined
      ? (await import('../streams/index.js')).streams
      : getOrThrow((await loadRuntime()).buildStreams(config, deletedAtColumns[protocol])),
  connect: async (protocol, config, { onNotice, onRequest, variables }) =>
    getOrThrow(
      (await loadRuntime()).createSource(config, {
        deletedAt: deletedAtColumns[protocol],
        onNotice,
        proxyVariables: variables,
        ...defined({ onRequest }),
      }),
    ),
  check: async (config, _stop, variables) => {
    const { warnings, findings } = await runOrThrow((await loadRuntime()).checkSourceConfig(config, variables))
    const sentences = findings.map(({ finding, text }) => `${finding[0]?.toUpperCase()}${finding.slice(1)}: ${text}.`)
    return { warnings, findings: sentences }
  },
  sendsTableVersions: ({ activate_version }) => activate_version,
  explainWithholding: async (stream, path) => {
    const { declaredStreams, findPrivacyPath } = await import('../streams/index.js')
    const privacyPath = findPrivacyPath(declaredStreams as ReadonlyArray<Stream<never>>, stream, path)
    return O.isNone(privacyPath) ? undefined : `add ${privacyPath.value} to privacy.drop in the config`
  },
  openCopy: async (config) => {
    if (config.snapshot_path === undefined) return undefined
    const { checkOutput, identifySource } = await loadRuntime()
    await runOrThrow(checkOutput(config))
    return openSnapshotCopy(config.snapshot_path, identifySource(config), config.reporting_time_zone)
  },
}

/** The commands of source-feedback. */
export const {
  spec: sourceSpecCommand,
  check: sourceCheckCommand,
  discover: sourceDiscoverCommand,
  read: sourceReadCommand,
} = createAirbyteSourceCommands(feedbackSource)

/** The command of tap-feedback. */
export const tapCommand = createTapCommand(feedbackSource)
