import * as E from 'fp-ts/Either'
import * as t from 'io-ts'

/** Who may have a token, and the tokens that are valid. */
export type Tokens = {
  /** Valid until the service ends. */
  readonly accessToken: string
  readonly applicationId: string
  readonly applicationSecret: string
  readonly isValid: (token: string | undefined) => boolean
  /** The answer to an exchange; undefined if the pair is wrong. */
  readonly exchange: (body: unknown) => { readonly accessToken: string; readonly expiresIn: number } | undefined
}

const Exchange = t.type({ applicationId: t.string, applicationSecret: t.string })

/** Tokens that live `lifetime` seconds. `random` makes a text that nobody can guess. */
export const tokens = (random: () => string, now: () => number, lifetime: number): Tokens => {
  const [accessToken, applicationId, applicationSecret] = [random(), `app-${random().slice(0, 8)}`, random()]
  const issued = new Map<string, number>()
  return {
    accessToken,
    applicationId,
    applicationSecret,
    isValid: (token) => token === accessToken || (token !== undefined && (issued.get(token) ?? 0) > now()),
    exchange: (body) => {
      const pair = Exchange.decode(body)
      if (E.isLeft(pair) || pair.right.applicationId !== applicationId) return undefined
      if (pair.right.applicationSecret !== applicationSecret) return undefined
      const token = random()
      issued.set(token, now() + 1000 * lifetime)
      return { accessToken: token, expiresIn: lifetime }
    },
  }
}
