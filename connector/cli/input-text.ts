import { readFile } from 'node:fs/promises'
import { CommandError, type CommandIo, unreadableFailure } from '../cdk'

/** The text of a file, or of stdin for `-`. */
export const readText = async (io: CommandIo, path: string): Promise<string> => {
  if (path !== '-')
    return readFile(path, 'utf8').catch((error: unknown) => {
      throw new CommandError(unreadableFailure(path, error))
    })
  const chunks: Uint8Array[] = []
  for await (const chunk of io.stdin) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}
