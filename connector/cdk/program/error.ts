import * as E from 'fp-ts/Either'
import type { TaskEither } from 'fp-ts/TaskEither'
import { configFailure, type Failure } from '../failure'

/**
 * A failure thrown by plain async code; the program reports it. `status`: the exit status, if the failure does not
 * determine it.
 */
export class CommandError extends Error {
  constructor(
    readonly failure: Failure,
    readonly status?: 2,
  ) {
    super(failure.message)
  }
}

/** The value, or its failure thrown as a `CommandError`. */
export const getOrThrow = <A>(result: E.Either<Failure, A>): A => {
  if (E.isLeft(result)) throw new CommandError(result.left)
  return result.right
}

/** The value of an effect, or its failure thrown as a `CommandError`. */
export const runOrThrow = async <A>(effect: TaskEither<Failure, A>): Promise<A> => getOrThrow(await effect())

/** The command line is wrong: exit status 2. */
export const usageError = (message: string): CommandError => new CommandError(configFailure(message), 2)
