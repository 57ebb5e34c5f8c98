/** Why something ended, sorted by who has to act: the one who configured it, time, or we. */
export type Failure = {
  readonly _tag: 'Config' | 'Transient' | 'System'
  /** For the person who must act: what is wrong, where, what to do. Holds no secret and no record. */
  readonly message: string
  /** For the log and for us. */
  readonly detail?: string
}

const createFailure =
  (_tag: Failure['_tag']) =>
  (message: string, detail?: string): Failure =>
    detail === undefined ? { _tag, message } : { _tag, message, detail }

/** The caller's to mend: a config, a catalog, a state, a permission. */
export const configFailure = createFailure('Config')
/** The service's or the network's: the same run may succeed later. */
export const transientFailure = createFailure('Transient')
/** Ours. */
export const systemFailure = createFailure('System')

/** What an exception that nobody expected becomes; its stack goes into the detail. */
export const unexpectedFailure = (error: unknown): Failure =>
  systemFailure(
    `An unexpected error in the connector: ${error instanceof Error ? error.message : String(error)}. Please report it.`,
    error instanceof Error ? error.stack : undefined,
  )
