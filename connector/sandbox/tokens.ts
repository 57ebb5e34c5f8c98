import type { IssuedToken, TokenRequest } from '../api/model/token'
import { type OperationName, operationNames } from './operations'

/** Who may have a token, and what tokens may be used for. */
export type TokenRegistry = {
  /** Valid until the service ends, unless revoked. */
  readonly accessToken: string
  readonly applicationId: string
  readonly applicationSecret: string
  /** The operations a token may call; undefined: it is not valid. */
  readonly grantedOperations: (token: string | undefined) => ReadonlyArray<OperationName> | undefined
  readonly revoke: (token: string | undefined) => void
  /** The answer to an exchange; undefined if the pair is wrong. */
  readonly issueToken: (pair: TokenRequest) => IssuedToken | undefined
}

export type TokenRegistryOptions = {
  /** Makes a text that nobody can guess. */
  readonly createText: () => string
  readonly now: () => number
  /** Seconds that an exchanged token lives. */
  readonly lifetimeSeconds: number
  /** Operations that the tokens of the application may not call. */
  readonly denied: ReadonlyArray<OperationName>
  /** Further tokens, with the operations they may call. */
  readonly granted: ReadonlyMap<string, ReadonlyArray<OperationName>>
}

export const createTokenRegistry = ({
  createText,
  now,
  lifetimeSeconds,
  denied,
  granted,
}: TokenRegistryOptions): TokenRegistry => {
  const [accessToken, applicationId, applicationSecret] = [
    createText(),
    `app-${createText().slice(0, 8)}`,
    createText(),
  ]
  const own = operationNames.filter((operation) => !denied.includes(operation))
  const endless = new Map([...granted, [accessToken, own] as const])
  const issued = new Map<string, number>()
  return {
    accessToken,
    applicationId,
    applicationSecret,
    grantedOperations: (token = '') => endless.get(token) ?? ((issued.get(token) ?? 0) > now() ? own : undefined),
    revoke: (token = '') => {
      endless.delete(token)
      issued.delete(token)
    },
    issueToken: (pair) => {
      if (pair.applicationId !== applicationId || pair.applicationSecret !== applicationSecret) return undefined
      const token = createText()
      issued.set(token, now() + 1000 * lifetimeSeconds)
      return { accessToken: token, expiresIn: lifetimeSeconds }
    },
  }
}
