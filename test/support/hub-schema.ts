import Ajv, { type ErrorObject } from 'ajv'
import addFormats from 'ajv-formats'

const words = { type: 'string', minLength: 1 }
const list = (items: object) => ({ type: 'array', minItems: 1, uniqueItems: true, items })

const setting = {
  type: 'object',
  required: ['name', 'label', 'description'],
  additionalProperties: false,
  properties: {
    name: words,
    label: words,
    description: words,
    value: {},
    sensitive: { const: true },
    kind: { enum: ['date_iso8601', 'integer', 'options', 'object', 'array', 'boolean', 'string', 'decimal'] },
    options: list({
      type: 'object',
      required: ['label', 'value'],
      additionalProperties: false,
      properties: { label: words, value: { type: 'string' } },
    }),
  },
}

const capabilities = {
  extractor: [
    'properties',
    'catalog',
    'discover',
    'state',
    'about',
    'stream-maps',
    'schema-flattening',
    'activate-version',
    'batch',
    'test',
    'log-based',
    'structured-logging',
  ],
  loader: [
    'about',
    'stream-maps',
    'activate-version',
    'batch',
    'soft-delete',
    'hard-delete',
    'datatype-failsafe',
    'schema-flattening',
    'target-schema',
    'validate-records',
    'structured-logging',
  ],
}

type PluginKind = keyof typeof capabilities

/**
 * What the schemas of Meltano's hub want of a plugin definition, for the keys that we use. A key that the hub leaves to
 * us is required: a definition is complete, and only what has no file of ours may be missing (`pip_url`, `ext_repo`,
 * `supported_python_versions`).
 */
const definitionSchema = (kind: PluginKind) => {
  const properties = {
    name: { type: 'string', pattern: kind === 'extractor' ? '^tap-[a-z0-9-]+$' : '^target-[a-z0-9-]+$' },
    namespace: { type: 'string', pattern: '^[a-z0-9_]+$' },
    label: words,
    description: words,
    variant: { type: 'string', pattern: '^[a-z0-9-]+$' },
    executable: words,
    repo: { type: 'string', format: 'uri', pattern: '^https://' },
    docs: { type: 'string', format: 'uri', pattern: '^https://' },
    domain_url: { type: 'string', format: 'uri', pattern: '^https://' },
    logo_url: { type: 'string', pattern: `^/assets/logos/${kind}s/[a-z0-9-]+\\.(png|svg)$` },
    capabilities: list({ enum: capabilities[kind] }),
    log_parser: { const: 'singer-sdk' },
    keywords: list(words),
    maintenance_status: { enum: ['active', 'beta', 'development', 'inactive', 'unknown'] },
    quality: { enum: ['gold', 'silver', 'bronze', 'unknown'] },
    definition: words,
    prereq: words,
    usage: words,
    settings_preamble: words,
    settings_group_validation: list(list(words)),
    settings: list(setting),
  }
  return { type: 'object', additionalProperties: false, required: Object.keys(properties), properties }
}

const ajv = new Ajv({ allErrors: true, strict: false })
addFormats(ajv)
const validators = {
  extractor: ajv.compile(definitionSchema('extractor')),
  loader: ajv.compile(definitionSchema('loader')),
}

type Definition = {
  readonly settings?: ReadonlyArray<{ readonly name: string; readonly kind?: string; readonly options?: unknown }>
  readonly settings_group_validation?: ReadonlyArray<ReadonlyArray<string>>
}

/** What is wrong with a parsed definition of the hub; empty if it is complete. */
export const hubErrors = (kind: PluginKind, definition: unknown): ReadonlyArray<string> => {
  const validate = validators[kind]
  if (!validate(definition))
    return (validate.errors ?? []).map(({ instancePath, message }: ErrorObject) => `${instancePath} ${message}`)
  const { settings = [], settings_group_validation: groups = [] } = definition as Definition
  const names = settings.map(({ name }) => name)
  return [
    ...names.filter((name, index) => names.indexOf(name) !== index).map((name) => `${name} stands twice`),
    ...groups
      .flat()
      .filter((name) => !names.includes(name))
      .map((name) => `the group names ${name}, which is no setting`),
    ...settings
      .filter(({ kind: type, options }) => (type === 'options') !== (options !== undefined))
      .map(({ name }) => `${name} has no options, or is not of the kind that has`),
  ]
}
