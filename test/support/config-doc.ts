import type { JsonSchema } from '../../connector/cdk/schema'

type Settings = Readonly<Record<string, JsonSchema>>

/** The settings of a configuration, one line each: key path, type, default, meaning. */
export const settingsTable = (schema: JsonSchema): string =>
  ['| key | type | default | meaning |', '| --- | --- | --- | --- |', ...lines(schema, '', true)].join('\n')

const lines = (schema: JsonSchema, path: string, required: boolean): ReadonlyArray<string> => {
  const wanted = (schema.required ?? []) as ReadonlyArray<string>
  return Object.entries((schema.properties ?? {}) as Settings).flatMap(([key, setting]) => {
    const name = path + key
    const needed = required && wanted.includes(key)
    const alternatives = setting.oneOf as ReadonlyArray<JsonSchema> | undefined
    if (alternatives !== undefined)
      return [row(name, setting, needed), ...alternatives.flatMap((one) => lines(one, `${name}.`, true))]
    return setting.properties === undefined ? [row(name, setting, needed)] : lines(setting, `${name}.`, needed)
  })
}

const row = (name: string, setting: JsonSchema, needed: boolean): string => {
  const { minimum, maximum } = setting
  const range = minimum === undefined ? '' : ` (${minimum}${maximum === undefined ? ' or more' : ` to ${maximum}`})`
  const items = (setting.items as JsonSchema | undefined)?.type
  const base = setting.format === 'date-time' ? 'date-time' : setting.type
  const type = `${setting.type === 'array' ? `array of ${items}s` : base}${range}`
  const standard =
    'const' in setting
      ? `\`"${setting.const}"\``
      : needed
        ? 'required'
        : 'default' in setting
          ? `\`${JSON.stringify(setting.default)}\``
          : ''
  return (
    `| \`${name}\` | ${type} | ${standard} | ` +
    `${setting.description}${setting.airbyte_secret === true ? ' (secret)' : ''} |`
  )
}
