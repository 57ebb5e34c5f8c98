import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const createFolder = (): string => mkdtempSync(join(tmpdir(), 'feedback-'))
const toText = (content: unknown): string | Uint8Array =>
  typeof content === 'string' || content instanceof Uint8Array ? content : JSON.stringify(content)

const folder = createFolder()
let fileCount = 0

/** The path of a file that does not exist yet, in a temporary folder. */
export const newTempPath = (ending: string): string => {
  fileCount += 1
  return join(folder, `${fileCount}.${ending}`)
}

/** A new file with this text, these bytes, or this value as JSON; returns its path. */
export const writeTempFile = (content: unknown, ending = 'json'): string => {
  const path = newTempPath(ending)
  writeFileSync(path, toText(content))
  return path
}

/** A temporary folder; `put` writes a file as `writeTempFile` does, but under the given name. */
export type JsonFolder = {
  readonly path: string
  readonly put: (name: string, value: unknown) => string
  readonly remove: () => void
}

export const createJsonFolder = (): JsonFolder => {
  const path = createFolder()
  return {
    path,
    put: (name, value) => {
      const file = join(path, name)
      writeFileSync(file, toText(value))
      return file
    },
    remove: () => rmSync(path, { recursive: true, force: true }),
  }
}
