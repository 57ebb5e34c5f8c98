import { stringify } from 'yaml'
import type { JsonSchema } from '../../connector/cdk/schema'
import { schemaAlternatives, schemaProperties } from '../support/schema-walk'

/**
 * A fraction has none: Meltano 4.4.1 cannot write what its kind `decimal` makes of one into the config. It passes a
 * text.
 */
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

/** The output of `tap-feedback --about` and `target-feedback --about`. */
export type SingerDescription = {
  readonly name: string
  readonly description: string
  readonly capabilities: ReadonlyArray<string>
  readonly settings: JsonSchema
}

/** Every leaf of the configuration as a setting of Meltano. */
export const hubSettings = ({ settings: spec }: Pick<SingerDescription, 'settings'>) =>
  settings(spec, '') as ReadonlyArray<{ readonly name: string; readonly label: string; readonly description: string }>

type HubTexts = { readonly definition: string; readonly prereq: string; readonly usage: string }

const prerequisite =
  'Node 20.19 or later, and the npm package `feedback-connector` installed in the ' +
  'project: the executable is a program of Node, so that no `pip_url` names it.'

const texts: Readonly<Record<string, HubTexts>> = {
  'tap-feedback': {
    definition: 'reads reviews, their deletions and what they are made of from a Feedback Data Service',
    prereq: prerequisite,
    usage:
      'A run sends what changed since the last one, and goes on where an interrupted ' +
      'run stopped. `deleted_reviews` names what to delete. The last minutes before ' +
      'the cursor are read again, so that a row may come twice under its key.',
  },
  'target-feedback': {
    definition: 'writes visits and locations to a Feedback Data Service',
    prereq: prerequisite,
    usage:
      'A stream goes to the object of its own name, `visit_records` or `locations`, ' +
      'unless the setting `streams` names another. Set `dry_run` first: the run then ' +
      'tells what it would send. Rejected records go to the file of `dead_letter_path`.',
  },
}

/** Nothing is published yet: these addresses replace those of the repository and of your service. */
const addresses = {
  repo: 'https://git.example.com/feedback/feedback-connector',
  docs: 'https://git.example.com/feedback/feedback-connector/docs/meltano.md',
  domain_url: 'https://feedback.example.com',
}

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
      ...addresses,
      logo_url: `/assets/logos/${name.startsWith('target-') ? 'loaders' : 'extractors'}/feedback.svg`,
      capabilities,
      log_parser: 'singer-sdk',
      keywords: ['api', 'nodejs', 'reviews'],
      maintenance_status: 'active',
      quality: 'unknown',
      ...texts[name],
      settings_preamble:
        'A dot in a name leads into an object: Meltano nests it. A list is given as JSON text in the environment.',
      settings_group_validation: schemaAlternatives(credentials).map((one) => [
        ...required,
        ...(one.required as ReadonlyArray<string>).map((key) => `credentials.${key}`),
      ]),
      settings: hubSettings(program),
    },
    { lineWidth: 0 },
  )
}
