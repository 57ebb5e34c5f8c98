import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as E from 'fp-ts/Either'
import * as t from 'io-ts'
import { describe, expect, it } from 'vitest'
import {
  findUnknownVariables,
  mergeConfigs,
  readConfigFromEnvironment,
} from '../../../connector/cdk/config/environment'
import {
  describeField,
  fieldWithDefault,
  integerField,
  oneOfField,
  optionalField,
  orderFields,
  sectionField,
  textField,
} from '../../../connector/cdk/config/fields'
import { readJsonFile, readStateFile } from '../../../connector/cdk/config/files'
import { createConfigFormat } from '../../../connector/cdk/config/format'
import { loadConfig } from '../../../connector/cdk/config/load'
import { readVariableFiles } from '../../../connector/cdk/config/secret-files'
import { createTestIo, toInput } from '../../support/command-io'
import { writeTempFile } from '../../support/files'

const schema = {
  type: 'object',
  properties: {
    base_url: { type: 'string' },
    page_size: { type: 'integer' },
    allow_http: { type: 'boolean' },
    sources: { type: 'array', items: { type: 'integer' } },
    fields: { type: 'array', items: { type: 'string' } },
    credentials: {
      oneOf: [
        { properties: { auth_type: { type: 'string' }, access_token: { type: 'string' } } },
        {
          properties: {
            auth_type: { type: 'string' },
            token_request: { type: 'object', properties: { id_field: { type: 'string' } } },
          },
        },
      ],
    },
  },
}
const read = (env: Record<string, string>) => readConfigFromEnvironment(schema, 'TAP_X')(env)

describe('readConfigFromEnvironment', () => {
  it.each<[string, Record<string, string>, unknown]>([
    ['text as it is', { TAP_X_BASE_URL: '12' }, { base_url: '12' }],
    ['numbers and booleans', { TAP_X_PAGE_SIZE: '12', TAP_X_ALLOW_HTTP: 'true' }, { page_size: 12, allow_http: true }],
    ['a wrong number, for the codec to refuse', { TAP_X_PAGE_SIZE: 'many' }, { page_size: 'many' }],
    ['a list as JSON', { TAP_X_SOURCES: '[1,2]' }, { sources: [1, 2] }],
    ['a list of words', { TAP_X_SOURCES: '1, 2', TAP_X_FIELDS: '1,b' }, { sources: [1, 2], fields: ['1', 'b'] }],
    ['an object as JSON', { TAP_X_CREDENTIALS: '{"auth_type":"a"}' }, { credentials: { auth_type: 'a' } }],
    [
      'flattened keys, of either kind',
      { TAP_X_CREDENTIALS_AUTH_TYPE: 'a', TAP_X_CREDENTIALS__TOKEN_REQUEST__ID_FIELD: 'i' },
      { credentials: { auth_type: 'a', token_request: { id_field: 'i' } } },
    ],
    [
      'flattened keys over JSON',
      { TAP_X_CREDENTIALS: '{"auth_type":"a","access_token":"old"}', TAP_X_CREDENTIALS_ACCESS_TOKEN: 'new' },
      { credentials: { auth_type: 'a', access_token: 'new' } },
    ],
    ['empty ones as left out', { TAP_X_BASE_URL: '', TAP_X_SOURCES: '' }, {}],
    [
      'a text that is no object beside its flattened keys, for the codec to refuse',
      { TAP_X_CREDENTIALS: 'abc', TAP_X_CREDENTIALS_ACCESS_TOKEN: 'a' },
      { credentials: 'abc' },
    ],
    ['a broken list as text, for the codec to refuse', { TAP_X_FIELDS: '["a", "b"' }, { fields: '["a", "b"' }],
    ['nothing of others', { TAP_Y_BASE_URL: 'x', BASE_URL: 'x', TAP_X_UNKNOWN: 'x' }, {}],
  ])('reads %s', (_, env, expected) => {
    expect(read(env)).toEqual(expected)
  })
})

it('findUnknownVariables names the variables with the prefix that match no key', () => {
  const env = {
    TAP_X_BASE_URL: 'x',
    TAP_X_CREDENTIALS: '{}',
    TAP_X_CREDENTIALS__TOKEN_REQUEST_ID_FIELD: 'i',
    TAP_X_PAGESIZE: '5',
    TAP_X_CREDENTIALS_TOKEN: 'a',
    TAP_X_EMPTY: '',
    TAP_X_CREDENTIALS_ACCESS_TOKEN_FILE: '/run/secrets/token',
    TAP_X_TOKEN_FILE: '/run/secrets/token',
    TAP_Y_OTHER: 'x',
  }
  expect(findUnknownVariables(schema, 'TAP_X', env)).toEqual([
    'TAP_X_PAGESIZE',
    'TAP_X_CREDENTIALS_TOKEN',
    'TAP_X_TOKEN_FILE',
  ])
})

it('merges objects key by key, and replaces everything else', () => {
  expect(mergeConfigs({ a: { b: 1, c: 2 }, d: [1] }, { a: { c: 3 }, d: [2] })).toEqual({ a: { b: 1, c: 3 }, d: [2] })
})

it('merges objects that are nested deeper than the stack could follow', () => {
  const [under, over] = ['under', 'over'].map((name) =>
    JSON.parse(`${'{"a":'.repeat(20_000)}"${name}"${'}'.repeat(20_000)}`),
  )
  let merged: unknown = mergeConfigs(under, over)
  while (typeof merged === 'object' && merged !== null && 'a' in merged) merged = merged.a
  expect(merged).toBe('over')
})

const folder = mkdtempSync(join(tmpdir(), 'file-'))
const file = (text: string | Uint8Array) => {
  const path = join(folder, `${Math.random()}.txt`)
  writeFileSync(path, text)
  return path
}

describe('readVariableFiles', () => {
  const readFiles = (env: Record<string, string>) => readVariableFiles(schema, 'TAP_X', env)

  it.each<[string, string, string]>([
    ['without the newline at its end', 'S3CR3T\n', 'S3CR3T'],
    ['without the newline of Windows', 'S3CR3T\r\n', 'S3CR3T'],
    ['where it ends in none', 'S3CR3T', 'S3CR3T'],
    ['with other white space as it is', ' S3CR3T \n\n', ' S3CR3T \n'],
    ['without a byte order mark', '\uFEFFS3CR3T', 'S3CR3T'],
  ])('gives the text of a file %s', async (_, text, expected) => {
    const env = { TAP_X_BASE_URL: 'x', TAP_X_CREDENTIALS_ACCESS_TOKEN_FILE: file(text) }
    const variables = await readFiles(env)()
    expect(E.map(readConfigFromEnvironment(schema, 'TAP_X'))(variables)).toEqual(
      E.right({ base_url: 'x', credentials: { access_token: expected } }),
    )
  })

  it.each([
    ['a number', { TAP_X_PAGE_SIZE_FILE: file('12\n') }, { page_size: 12 }],
    ['a list', { TAP_X_SOURCES_FILE: file('1,2\n') }, { sources: [1, 2] }],
    ['an object', { TAP_X_CREDENTIALS_FILE: file('{"auth_type": "a"}\n') }, { credentials: { auth_type: 'a' } }],
    [
      'a key of an object under its other name',
      { TAP_X_CREDENTIALS: '{"auth_type":"a"}', TAP_X_CREDENTIALS__ACCESS_TOKEN_FILE: file('b') },
      { credentials: { auth_type: 'a', access_token: 'b' } },
    ],
    ['nothing where the variable is empty', { TAP_X_BASE_URL: 'x', TAP_X_BASE_URL_FILE: '' }, { base_url: 'x' }],
  ])('gives %s', async (_, env, expected) => {
    const variables = await readFiles(env as Record<string, string>)()
    expect(E.map(readConfigFromEnvironment(schema, 'TAP_X'))(variables)).toEqual(E.right(expected))
  })

  it('leaves alone a key whose own name ends in _file', async () => {
    const own = { type: 'object', properties: { key: { type: 'string' }, key_file: { type: 'string' } } }
    const env = { X_KEY: 'a', X_KEY_FILE: '/nowhere' }
    expect(E.map(readConfigFromEnvironment(own, 'X'))(await readVariableFiles(own, 'X', env)())).toEqual(
      E.right({ key: 'a', key_file: '/nowhere' }),
    )
  })

  const missing = join(folder, 'missing')
  it.each<[string, Record<string, string>, string]>([
    [
      'a key that is given both ways',
      { TAP_X_BASE_URL: 'S3CR3T', TAP_X_BASE_URL_FILE: file('S3CR3T') },
      'TAP_X_BASE_URL_FILE and TAP_X_BASE_URL are both set. Unset one of them.',
    ],
    [
      'a key that is given both ways, under two names',
      {
        TAP_X_CREDENTIALS_ACCESS_TOKEN: 'S3CR3T',
        TAP_X_CREDENTIALS__ACCESS_TOKEN_FILE: missing,
      },
      'TAP_X_CREDENTIALS__ACCESS_TOKEN_FILE and TAP_X_CREDENTIALS_ACCESS_TOKEN are both set. Unset one of them.',
    ],
    ['a missing file', { TAP_X_BASE_URL_FILE: missing }, `The TAP_X_BASE_URL_FILE file ${missing} does not exist.`],
    ['a folder', { TAP_X_BASE_URL_FILE: folder }, `The TAP_X_BASE_URL_FILE file ${folder} is a folder.`],
  ])('refuses %s', async (_, env, message) => {
    expect(await readFiles(env)()).toEqual(E.left({ _tag: 'Config', message }))
  })

  it.each([
    ['an empty file', file('\n'), 'is empty.'],
    ['bytes that are no text', file(Buffer.from('caf\xe9 S3CR3T', 'latin1')), 'is not UTF-8. Save it as UTF-8.'],
  ])('refuses %s and keeps its content to itself', async (_, path, problem) => {
    expect(await readFiles({ TAP_X_BASE_URL_FILE: path })()).toEqual(
      E.left({ _tag: 'Config', message: `The TAP_X_BASE_URL_FILE file ${path} ${problem}` }),
    )
  })
})

describe('readJsonFile', () => {
  it('does not show JSON that is given instead of a path', async () => {
    expect(await readJsonFile('config', '{"credentials":{"access_token":"tokSECRET1"}}')()).toMatchObject({
      left: { _tag: 'Config', message: '--config needs the path of a file, but got JSON. Save the JSON to a file.' },
    })
  })

  it('reads JSON, with a byte order mark too', async () => {
    expect(await readJsonFile('config', file('\uFEFF{"a": 1}'))()).toEqual(E.right({ a: 1 }))
  })

  it.each([
    ['no file', () => join(folder, 'missing.json'), 'does not exist'],
    ['a folder', () => folder, 'is a folder'],
    ['an empty file', () => file(''), 'ends too early or is empty'],
    ['half of a file', () => file('{"access_token": "S3CR3T'), 'is not JSON'],
    ['another alphabet', () => file(Buffer.from('{"a": "caf\xe9 S3CR3T"}', 'latin1')), 'is not UTF-8'],
    ['UTF-16', () => file(Buffer.from('\uFEFF{"a": "S3CR3T"}', 'utf16le')), 'is not UTF-8'],
    ['a slip', () => file('{\n  "a": tru\n}'), 'line 2'],
  ])('names the problem of %s', async (_, path, expected) => {
    const name = path()
    const result = await readJsonFile('config', name)()
    expect(result).toMatchObject({ _tag: 'Left', left: { _tag: 'Config' } })
    const { message } = (result as E.Left<{ message: string }>).left
    expect(message).toContain(`The config file ${name}`)
    expect(message).toContain(expected)
    expect(message).not.toContain('S3CR3T')
  })
})

describe('readStateFile', () => {
  it.each<[string, string, unknown]>([
    ['nothing', ' \n', null],
    ['JSON', '[{"a":1}]', [{ a: 1 }]],
    ['odd white space', '\n  [ ]\t\n', []],
    ['printed lines', '{"type":"STATE"}\n\n{"type":"STATE"}\n', [{ type: 'STATE' }, { type: 'STATE' }]],
  ])('reads %s', async (_, text, expected) => {
    expect(await readStateFile(file(text))()).toEqual(E.right(expected))
  })

  it('refuses a line that is cut off', async () => {
    expect(await readStateFile(file('{"type":"STATE"}\n{"type"'))()).toMatchObject({
      _tag: 'Left',
      left: { _tag: 'Config' },
    })
  })
})

describe('a secret that is missing', () => {
  const format = createConfigFormat(
    orderFields({
      credentials: oneOfField('auth_type', {
        token: orderFields({
          auth_type: t.literal('token'),
          token: describeField('Token', '', { airbyte_secret: true })(textField),
        }),
        pair: orderFields({
          auth_type: t.literal('pair'),
          id: textField,
          secret: describeField('Secret', '', { airbyte_secret: true })(textField),
        }),
      }),
    }),
    { title: 'Test', documentationUrl: 'https://example.com' },
  )
  const io = createTestIo(toInput(''), async () => undefined, { env: { TEST_CREDENTIALS_ID: 'a' } })

  it.each<[object, ReadonlyArray<string>, string]>([
    [{ auth_type: 'token' }, [], ' With --config ENV the secret is read from TEST_CREDENTIALS_TOKEN.'],
    [{ auth_type: 'pair' }, ['ENV'], ' TEST_CREDENTIALS_SECRET is not set.'],
  ])('of %j is named by its variable, beside %j', async (credentials, more, says) => {
    await expect(loadConfig(io, format, [writeTempFile({ credentials }), ...more], 'TEST')).rejects.toThrow(says)
  })

  it('names no variable where another key is missing', async () => {
    const credentials = { auth_type: 'pair', secret: 'b' }
    await expect(loadConfig(io, format, [writeTempFile({ credentials })], 'TEST')).rejects.toThrow(
      /credentials\.id is missing, expected string\.$/,
    )
  })
})

describe('a key that the config does not have', () => {
  const format = createConfigFormat(
    orderFields({
      base_url: textField,
      page_size: optionalField(integerField(1)),
      limits: sectionField(orderFields({ max_concurrency: fieldWithDefault(integerField(1), 4) })),
    }),
    { title: 'Test', documentationUrl: 'https://example.com' },
  )
  const warnings: string[] = []
  const io = createTestIo(toInput(''), async () => undefined, { printWarning: (line) => void warnings.push(line) })
  const load = (value: unknown) => loadConfig(io, format, [writeTempFile(value)], 'TEST')

  it.each([
    [{ pagesize: 5 }, 'pagesize', 'page_size'],
    [{ pageSize: 5 }, 'pageSize', 'page_size'],
    [{ limits: { max_concurency: 5 } }, 'limits.max_concurency', 'limits.max_concurrency'],
    [{ max_concurrency: 5 }, 'max_concurrency', 'limits.max_concurrency'],
  ])('%j is warned of with the key that was probably meant', async (more, wrong, right) => {
    warnings.length = 0
    await load({ base_url: 'x', ...more })
    expect(warnings.join()).toContain(`${wrong} is not a key of the config and has no effect (did you mean ${right}?).`)
  })

  it('is named too where a required key is missing for it', async () => {
    await expect(load({ base_ulr: 'x' })).rejects.toThrow(
      'base_url is missing, expected string. base_ulr is not a key ' +
        'of the config and has no effect (did you mean base_url?).',
    )
  })

  it('is named without a suggestion where no key is near', async () => {
    warnings.length = 0
    await load({ base_url: 'x', colour: 'red' })
    expect(warnings).toEqual([expect.stringMatching(/: colour is not a key of the config and has no effect\.$/)])
  })
})
