import { type Failure, systemFailure, transientFailure } from '../cdk/failure'

/** Why DuckDB did not take a batch. Its own words may quote a record after `Input:`; these are left out. */
export const databaseWriteFailure = (path: string, error: unknown): Failure => {
  const detail = (error instanceof Error ? error.message : String(error)).replace(/Input:[\s\S]*/, '')
  if (/No space left|disk quota|File too large/i.test(detail))
    return transientFailure(
      `${path} cannot grow: the disk is full, or no file may be as large. Make room and run again; what was committed is kept.`,
      detail,
    )
  return systemFailure(`${path} cannot be written: ${detail.split('\n')[0]}`, detail)
}
