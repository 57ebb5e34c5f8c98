import * as t from 'io-ts'

/** What an application gives for a token; the form is not documented, so a config can name other fields. */
export const TokenRequest = t.type({ applicationId: t.string, applicationSecret: t.string }, 'TokenRequest')
export type TokenRequest = t.TypeOf<typeof TokenRequest>

/** A token and its lifetime in seconds. */
export const IssuedToken = t.type({ accessToken: t.string, expiresIn: t.number }, 'IssuedToken')
export type IssuedToken = t.TypeOf<typeof IssuedToken>
