import { readFile } from 'node:fs/promises'
import { CommandError, type CommandIo, configFailure } from '../cdk'

/** The text of a file, or of stdin for `-`. */
export const readText = async (io: CommandIo, path: string): Promise<string> => {
  if (path !== '-')
    return readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
      throw new CommandError(configFailure(`${path} cannot be read (${error.code ?? error.message}). Check the path.`))
    })
  const chunks: Uint8Array[] = []
  for await (const chunk of io.stdin) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}
