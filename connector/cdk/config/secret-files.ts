import * as E from 'fp-ts/Either'
import type { TaskEither } from 'fp-ts/TaskEither'
import { configFailure, type Failure } from '../failure'
import { declaredProperties, type JsonSchema } from '../schema'
import { type EnvironmentVariables, fileVariables, isGiven, listKeys } from './environment'
import { readTextFile } from './files'

/**
 * Replaces each variable `NAME_FILE` of a key by NAME with the content of that file, less the newline at its end. Fails
 * if a key is given both ways, or if a file is empty or cannot be read.
 */
export const readVariableFiles =
  (schema: JsonSchema, prefix: string, env: EnvironmentVariables): TaskEither<Failure, EnvironmentVariables> =>
  async () => {
    const keys = listKeys(schema, [`${prefix}_`])
    const declared = new Set(keys.flat())
    const texts: Record<string, string> = {}
    for (const names of keys) {
      const files = fileVariables(names).filter((name) => isGiven(env[name]) && !declared.has(name))
      const [first = '', second] = [...files, ...names.filter((name) => isGiven(env[name]))]
      if (files.length === 0) continue
      if (second !== undefined) return E.left(configFailure(`${first} and ${second} are both set. Unset one of them.`))
      const text = await readTextFile(first, env[first] ?? '')()
      if (E.isLeft(text)) return text
      const value = text.right.replace(/\r?\n$/, '')
      if (value === '') return E.left(configFailure(`The ${first} file ${env[first]} is empty.`))
      texts[names[0] ?? ''] = value
    }
    return E.right({ ...env, ...texts })
  }

/** Each secret key's path and its variable. */
const listSecretKeys = (
  schema: JsonSchema,
  path: string,
  stem: string,
): ReadonlyArray<readonly [path: string, variable: string]> =>
  Object.entries(declaredProperties(schema)).flatMap(([key, inner]) => {
    const [innerPath, variable] = [`${path}${key}`, `${stem}_${key.toUpperCase()}`]
    return inner.airbyte_secret === true
      ? [[innerPath, variable] as const]
      : listSecretKeys(inner, `${innerPath}.`, variable)
  })

/** Adds the variables of missing secrets to the failure, since secrets often come from the environment. */
export const nameSecretVariables = (
  schema: JsonSchema,
  prefix: string,
  paths: ReadonlyArray<string>,
  failure: Failure,
): Failure => {
  const missing = listSecretKeys(schema, '', prefix).filter(([path]) => failure.message.includes(`${path} is missing`))
  if (missing.length === 0) return failure
  const names = missing.map(([, variable]) => variable).join(' and ')
  const where = paths.includes('ENV') ? `${names} is not set` : `With --config ENV the secret is read from ${names}`
  return { ...failure, message: `${failure.message} ${where}.` }
}
