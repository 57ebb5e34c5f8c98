import * as t from 'io-ts'

/** An application's id and secret, in the fields that published deployments take; a config can name others. */
export const TokenRequest = t.type({ appId: t.string, appSecret: t.string }, 'TokenRequest')
export type TokenRequest = t.TypeOf<typeof TokenRequest>

/** A token and its lifetime in seconds. */
export const IssuedToken = t.type({ accessToken: t.string, expiresIn: t.number }, 'IssuedToken')
export type IssuedToken = t.TypeOf<typeof IssuedToken>
