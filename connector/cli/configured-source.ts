import { type CommandIo, getOrThrow, loadConfig } from '../cdk'
import { type SourceConfig, sourceFormat } from '../config'
import { type ConfiguredSource, createSource } from '../runtime'
import { variablePrefix } from './options'

/** Loads the source's configuration from the files of `--config`. Rejects with a `CommandError`. */
export const loadSourceConfig = (io: CommandIo, paths: ReadonlyArray<string>): Promise<SourceConfig> =>
  loadConfig(io, sourceFormat, paths, variablePrefix)

/** Opens the source of a configuration; its notices become warnings. Throws a `CommandError`. */
export const openSource = (io: CommandIo, config: SourceConfig): ConfiguredSource =>
  getOrThrow(createSource(config, { onNotice: io.printWarning, proxyVariables: io.env }))
