/** Why something ended. The tag shows what helps: another config, a later run, or a fix of the connector. */
export type Failure = {
  readonly _tag: 'Config' | 'Transient' | 'System'
  /** For the person who must act: what is wrong, where, and what to do. Holds no secret and no record. */
  readonly message: string
  /** For the log and the maintainers. */
  readonly detail?: string
  /** run: every other request of the run would fail in the same way, for example because of a wrong token. */
  readonly scope?: 'run'
}

const createFailure =
  (_tag: Failure['_tag']) =>
  (message: string, detail?: string): Failure =>
    detail === undefined ? { _tag, message } : { _tag, message, detail }

/** The caller must change something: a config, a catalog, a state, a permission. */
export const configFailure = createFailure('Config')

/** The service or the network failed. The same run may succeed later. */
export const transientFailure = createFailure('Transient')

/** The connector has a bug. */
export const systemFailure = createFailure('System')

/** The failure for an unexpected exception, with its stack as detail. */
export const unexpectedFailure = (error: unknown): Failure =>
  systemFailure(
    'An unexpected error in the connector: ' +
      `${error instanceof Error ? error.message : String(error)}. Please report it.`,
    error instanceof Error ? error.stack : undefined,
  )

/** A file that the user named cannot be read. */
export const unreadableFailure = (path: string, error: unknown): Failure => {
  const { code } = error as NodeJS.ErrnoException
  return configFailure(`${path} cannot be read (${code ?? String(error)}). Check the path.`)
}

/** Why the file system rejected a path. */
export const pathFailure = (path: string, error: unknown): Failure => {
  const { code } = error as NodeJS.ErrnoException
  if (code === 'ENOTDIR') return configFailure(`${path} is not a folder, or leads through a file. Check the path.`)
  return configFailure(
    code === 'EACCES'
      ? `${path}: permission denied. Check who may read and write it, and who may enter its folder.`
      : `${path} cannot be used (${code}). Check the path.`,
  )
}
