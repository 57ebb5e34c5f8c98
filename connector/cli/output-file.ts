import { randomUUID } from 'node:crypto'
import { open, readlink, realpath, rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { CommandError, configFailure } from '../cdk'
import { isDiskFull, outputFullFailure } from '../snapshot'
import { errorCode } from './ingest'

/** The file that a path leads to through symbolic links. It may not exist yet. */
const resolveLinks = async (path: string, linksLeft = 40): Promise<string> => {
  const existing = await realpath(path).catch(() => undefined)
  if (existing !== undefined) return existing
  const target = linksLeft === 0 ? undefined : await readlink(path).catch(() => undefined)
  if (target !== undefined) return resolveLinks(resolve(dirname(path), target), linksLeft - 1)
  const parent = dirname(path)
  return parent === path ? path : join(await resolveLinks(parent, linksLeft), basename(path))
}

/** True if a file is a DuckDB database, ours or not. */
const isDatabaseFile = async (path: string): Promise<boolean> => {
  const file = await open(path).catch(() => undefined)
  try {
    const { buffer, bytesRead } = (await file?.read(Buffer.alloc(12), 0, 12, 0)) ?? {
      buffer: Buffer.alloc(0),
      bytesRead: 0,
    }
    return buffer.toString('latin1', 8, bytesRead) === 'DUCK'
  } catch {
    return false
  } finally {
    await file?.close()
  }
}

/**
 * Refuses to overwrite a database: the snapshot `db` under any path, the files that DuckDB keeps beside it, or another
 * database. Call it while the snapshot is closed, because closing any handle of a file releases DuckDB's lock.
 */
export const refuseDatabaseAsOutput = async (out: string, db: string | undefined): Promise<void> => {
  const target = await resolveLinks(resolve(out))
  const refuse = (what: string): never => {
    throw new CommandError(configFailure(`--out ${out} is ${what}. It was not changed; give another path.`))
  }
  for (const path of db === undefined ? [] : [resolve(db), await resolveLinks(resolve(db))]) {
    if (target === path) refuse('the snapshot itself')
    if (target.startsWith(`${path}.wal`) || target.startsWith(`${path}.tmp`)) refuse('a file of the snapshot')
  }
  const [found, own] = await Promise.all(
    [target, db].map((path) => (path === undefined ? undefined : stat(path).catch(() => undefined))),
  )
  if (found && own && found.ino === own.ino && found.dev === own.dev) refuse('the snapshot itself')
  if (found?.isFile() && (await isDatabaseFile(target))) refuse('a DuckDB database')
}

/** A text, whole or in pieces, or a function that writes to the path of an empty file. */
type OutputContent = string | AsyncIterable<string> | ((path: string) => Promise<void>)

/**
 * Replaces a file atomically, so that a reader never sees part of it. Only its owner can read it, since it may hold
 * patients' words. A path that is not a file, such as a pipe, is written to directly. Errors of the content itself are
 * rethrown unchanged.
 */
export const writeOutputFile = async (path: string, content: OutputContent): Promise<void> => {
  try {
    const found = await stat(path).catch(() => undefined)
    if (found !== undefined && !found.isFile()) {
      if (typeof content === 'function')
        throw new CommandError(configFailure(`${path} is not a file, and this format needs one.`))
      return await writeFile(path, content)
    }
    const target = await resolveLinks(resolve(path))
    const temporary = `${target}.${randomUUID()}.tmp`
    try {
      await writeFile(temporary, typeof content === 'function' ? '' : content, { mode: 0o600, flag: 'wx' })
      if (typeof content === 'function') await content(temporary)
      await rename(temporary, target)
    } catch (error) {
      await rm(temporary, { force: true })
      // DuckDB's own error names the file.
      throw isDiskFull(error) && String(error).includes(temporary) ? new CommandError(outputFullFailure(path)) : error
    }
  } catch (error) {
    const { syscall } = error as NodeJS.ErrnoException
    if (syscall === undefined) throw error
    throw new CommandError(
      ['ENOSPC', 'EDQUOT', 'EFBIG'].includes(errorCode(error))
        ? outputFullFailure(path)
        : configFailure(`${path} cannot be written. ${errorCode(error)}: check the path.`),
    )
  }
}
