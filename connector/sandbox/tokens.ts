import type { IssuedToken, TokenRequest } from '../api/model/token'
import { type Operation, operations } from './operations'

/** Who may have a token, and what tokens may be used for. */
export type Tokens = {
  /** Valid until the service ends, unless revoked. */
  readonly accessToken: string
  readonly applicationId: string
  readonly applicationSecret: string
  /** The operations a token may call; undefined: it is not valid. */
  readonly grant: (token: string | undefined) => ReadonlyArray<Operation> | undefined
  readonly revoke: (token: string | undefined) => void
  /** The answer to an exchange; undefined if the pair is wrong. */
  readonly exchange: (pair: TokenRequest) => IssuedToken | undefined
}

export type TokenOptions = {
  /** Makes a text that nobody can guess. */
  readonly random: () => string
  readonly now: () => number
  /** Seconds that an exchanged token lives. */
  readonly lifetime: number
  /** Operations that the tokens of the application may not call. */
  readonly denied: ReadonlyArray<Operation>
  /** Further tokens, with the operations they may call. */
  readonly granted: ReadonlyMap<string, ReadonlyArray<Operation>>
}

export const tokens = ({ random, now, lifetime, denied, granted }: TokenOptions): Tokens => {
  const [accessToken, applicationId, applicationSecret] = [random(), `app-${random().slice(0, 8)}`, random()]
  const own = operations.filter((operation) => !denied.includes(operation))
  const endless = new Map([...granted, [accessToken, own] as const])
  const issued = new Map<string, number>()
  return {
    accessToken,
    applicationId,
    applicationSecret,
    grant: (token = '') => endless.get(token) ?? ((issued.get(token) ?? 0) > now() ? own : undefined),
    revoke: (token = '') => {
      endless.delete(token)
      issued.delete(token)
    },
    exchange: (pair) => {
      if (pair.applicationId !== applicationId || pair.applicationSecret !== applicationSecret) return undefined
      const token = random()
      issued.set(token, now() + 1000 * lifetime)
      return { accessToken: token, expiresIn: lifetime }
    },
  }
}
