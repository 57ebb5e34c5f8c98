import * as t from 'io-ts'

/** What an application gives for a token (Authentication 2); how is not shown, so a config can name other fields. */
export const TokenRequest = t.type({ applicationId: t.string, applicationSecret: t.string }, 'TokenRequest')
export type TokenRequest = t.TypeOf<typeof TokenRequest>

/** A token, and the seconds it is valid. */
export const IssuedToken = t.type({ accessToken: t.string, expiresIn: t.number }, 'IssuedToken')
export type IssuedToken = t.TypeOf<typeof IssuedToken>
