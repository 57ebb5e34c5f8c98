import Ajv, { type ErrorObject } from 'ajv'
import addFormats from 'ajv-formats'

const words = { type: 'string', minLength: 1 }
const version = { type: 'string', pattern: '^\\d+\\.\\d+\\.\\d+$' }
const registry = {
  type: 'object',
  additionalProperties: false,
  required: ['enabled'],
  properties: { enabled: { type: 'boolean' } },
}
const resources = {
  type: 'object',
  additionalProperties: false,
  properties: Object.fromEntries(
    ['cpu_request', 'cpu_limit', 'memory_request', 'memory_limit'].map((name) => [
      name,
      { type: 'string', pattern: '^\\d+(\\.\\d+)?(m|Mi|Gi)?$' },
    ]),
  ),
}

/**
 * The rules of Airbyte's published ConnectorMetadataDefinitionV0 for the keys that we use, and for those of a breaking
 * change.
 */
const metadataSchema = {
  type: 'object',
  required: ['metadataSpecVersion', 'data'],
  additionalProperties: false,
  properties: {
    metadataSpecVersion: { const: '1.0' },
    data: {
      type: 'object',
      additionalProperties: false,
      required: [
        'name',
        'definitionId',
        'connectorType',
        'dockerRepository',
        'dockerImageTag',
        'license',
        'documentationUrl',
        'githubIssueLabel',
        'connectorSubtype',
        'releaseStage',
        'supportLevel',
      ],
      properties: {
        name: words,
        icon: words,
        definitionId: { type: 'string', format: 'uuid' },
        connectorType: { enum: ['source', 'destination'] },
        dockerRepository: { type: 'string', pattern: '^[a-z0-9-]+/[a-z0-9-]+$' },
        dockerImageTag: words,
        license: words,
        documentationUrl: { type: 'string', format: 'uri' },
        externalDocumentationUrls: {
          type: 'array',
          items: {
            type: 'object',
            additionalProperties: false,
            required: ['title', 'url'],
            properties: {
              title: words,
              url: { type: 'string', format: 'uri' },
              type: {
                enum: [
                  'api_deprecations',
                  'api_reference',
                  'api_release_history',
                  'authentication_guide',
                  'code_repository',
                  'data_model_reference',
                  'developer_community',
                  'migration_guide',
                  'openapi_spec',
                  'other',
                  'permissions_scopes',
                  'rate_limits',
                  'spec_repository',
                  'sql_reference',
                  'status_page',
                ],
              },
              requiresLogin: { type: 'boolean' },
            },
          },
        },
        erdUrl: words,
        githubIssueLabel: words,
        maxSecondsBetweenMessages: { type: 'integer', minimum: 1 },
        releaseDate: { type: 'string', format: 'date' },
        protocolVersion: version,
        connectorSubtype: {
          enum: ['api', 'database', 'datalake', 'file', 'custom', 'message_queue', 'unknown', 'vectorstore'],
        },
        releaseStage: { enum: ['alpha', 'beta', 'generally_available', 'custom'] },
        supportLevel: { enum: ['community', 'certified', 'archived'] },
        tags: { type: 'array', items: { type: 'string' } },
        registryOverrides: {
          type: 'object',
          additionalProperties: false,
          properties: { oss: registry, cloud: registry },
        },
        allowedHosts: {
          type: 'object',
          additionalProperties: false,
          properties: { hosts: { type: 'array', items: words } },
        },
        suggestedStreams: {
          type: 'object',
          additionalProperties: false,
          properties: { streams: { type: 'array', items: words } },
        },
        resourceRequirements: {
          type: 'object',
          additionalProperties: false,
          properties: {
            default: resources,
            jobSpecific: {
              type: 'array',
              items: {
                type: 'object',
                additionalProperties: false,
                required: ['jobType', 'resourceRequirements'],
                properties: {
                  jobType: {
                    enum: [
                      'get_spec',
                      'check_connection',
                      'discover_schema',
                      'sync',
                      'reset_connection',
                      'connection_updater',
                      'replicate',
                    ],
                  },
                  resourceRequirements: resources,
                },
              },
            },
          },
        },
        supportsDataActivation: { type: 'boolean' },
        supportsRefreshes: { type: 'boolean' },
        connectorBuildOptions: {
          type: 'object',
          additionalProperties: false,
          properties: { baseImage: words },
        },
        connectorTestSuitesOptions: {
          type: 'array',
          items: {
            type: 'object',
            required: ['suite'],
            additionalProperties: false,
            properties: {
              suite: { enum: ['unitTests', 'integrationTests', 'acceptanceTests', 'liveTests', 'smokeTests'] },
            },
          },
        },
        releases: {
          type: 'object',
          additionalProperties: false,
          properties: {
            breakingChanges: {
              type: 'object',
              minProperties: 1,
              additionalProperties: false,
              patternProperties: {
                '^\\d+\\.\\d+\\.\\d+$': {
                  type: 'object',
                  required: ['upgradeDeadline', 'message'],
                  properties: {
                    upgradeDeadline: { type: 'string', format: 'date' },
                    message: words,
                    deadlineAction: { enum: ['auto_upgrade', 'disable'] },
                  },
                },
              },
            },
          },
        },
      },
    },
  },
}

const ajv = new Ajv({ allErrors: true, strict: false })
addFormats(ajv)
const validate = ajv.compile(metadataSchema)

/** Where parsed metadata violates the platform's schema, and why; empty if it does not. */
export const metadataErrors = (metadata: unknown): ReadonlyArray<string> =>
  validate(metadata)
    ? []
    : (validate.errors ?? []).map(({ instancePath, message }: ErrorObject) => `${instancePath} ${message}`)
