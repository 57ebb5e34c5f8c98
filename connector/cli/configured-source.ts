import { type CommandIo, getOrThrow, loadConfig } from '../cdk'
import { type SourceConfig, sourceFormat } from '../config'
import { type ConfiguredSource, createSource } from '../runtime'
import { variablePrefix } from './options'

/** The configuration of the source in the files of `--config`; rejects with a `CommandError`. */
export const loadSourceConfig = (io: CommandIo, paths: ReadonlyArray<string>): Promise<SourceConfig> =>
  loadConfig(io, sourceFormat, paths, variablePrefix)

/** The source of a configuration, whose notices are warnings; throws a `CommandError`. */
export const openSource = (io: CommandIo, config: SourceConfig): ConfiguredSource =>
  getOrThrow(createSource(config, { onNotice: io.printWarning, proxyVariables: io.env }))
