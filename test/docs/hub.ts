import { stringify } from 'yaml'
import type { JsonSchema } from '../../connector/cdk/schema'
import { schemaAlternatives, schemaProperties } from '../support/schema-walk'

/** A fraction has none: Meltano 4.4.1 cannot write what its kind `decimal` makes of one into the config. It passes a text. */
const kinds: Readonly<Record<string, string>> = {
  integer: 'integer',
  boolean: 'boolean',
  array: 'array',
  object: 'object',
}

const choices = (values: ReadonlyArray<unknown>) => ({
  kind: 'options',
  options: values.map((value) => ({ label: String(value), value })),
})

const kindOf = (schema: JsonSchema): object => {
  if (Array.isArray(schema.enum)) return choices(schema.enum)
  if (schema.format === 'date-time') return { kind: 'date_iso8601' }
  const kind = kinds[String(schema.type)]
  return kind === undefined ? {} : { kind }
}

/** A key that is a constant of each alternative is the choice among them. */
const discriminators = (schema: JsonSchema): ReadonlyArray<string> =>
  Object.entries(schemaProperties(schemaAlternatives(schema)[0] ?? {})).flatMap(([key, inner]) =>
    'const' in inner ? [key] : [],
  )

const settings = (schema: JsonSchema, path: string): ReadonlyArray<object> => [
  ...discriminators(schema).map((key) => {
    const values = schemaAlternatives(schema).map((one) => schemaProperties(one)[key]?.const)
    return {
      name: `${path}${key}`,
      label: schema.title,
      description: schema.description,
      ...choices(values),
      value: values[0],
    }
  }),
  ...[schema, ...schemaAlternatives(schema)].flatMap((one) =>
    Object.entries(schemaProperties(one)).flatMap(([key, inner]): ReadonlyArray<object> => {
      if ('const' in inner) return []
      if (inner.type === 'object') return settings(inner, `${path}${key}.`)
      const { title, description, default: value } = inner
      return [
        {
          name: `${path}${key}`,
          label: title,
          description,
          ...kindOf(inner),
          ...(inner.airbyte_secret === true ? { sensitive: true } : {}),
          ...(value === undefined ? {} : { value }),
        },
      ]
    }),
  ),
]

/** What `tap-feedback --about` and `target-feedback --about` tell. */
export type SingerDescription = {
  readonly name: string
  readonly description: string
  readonly capabilities: ReadonlyArray<string>
  readonly settings: JsonSchema
}

/** Every leaf of the configuration as a setting of Meltano. */
export const hubSettings = ({ settings: spec }: Pick<SingerDescription, 'settings'>) =>
  settings(spec, '') as ReadonlyArray<{ readonly name: string; readonly label: string; readonly description: string }>

/** A tap or a target in the form of Meltano's hub, which docs/meltano-hub.yml and docs/meltano-hub-target.yml show. */
export const hubDefinition = (program: SingerDescription): string => {
  const { name, description, capabilities, settings: spec } = program
  const [credentials = {}] = Object.entries(schemaProperties(spec)).flatMap(([key, inner]) =>
    key === 'credentials' ? [inner] : [],
  )
  const required = (spec.required as ReadonlyArray<string>).filter((key) => key !== 'credentials')
  return stringify(
    {
      name,
      namespace: name.replaceAll('-', '_'),
      label: spec.title,
      description,
      variant: 'feedback',
      executable: `./node_modules/.bin/${name}`,
      capabilities,
      keywords: ['api', 'nodejs'],
      maintenance_status: 'active',
      settings_group_validation: schemaAlternatives(credentials).map((one) => [
        ...required,
        ...(one.required as ReadonlyArray<string>).map((key) => `credentials.${key}`),
      ]),
      settings: hubSettings(program),
    },
    { lineWidth: 0 },
  )
}
