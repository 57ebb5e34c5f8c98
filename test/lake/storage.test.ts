import { describe, expect, it } from 'vitest'
import { lakeErrorFailure } from '../../connector/lake/errors'
import { describeLake } from '../../connector/lake/place'
import { makeDataFolder, storageSecretSql } from '../../connector/lake/storage'
import { newTempPath, writeTempFile } from '../support/files'

const keys = { AWS_ACCESS_KEY_ID: 'key', AWS_REGION: 'eu-central-1' }

describe('the access to the storage of a lake', () => {
  it('is read from variables, or from the files that they name with _FILE', () => {
    const sql = storageSecretSql({ ...keys, AWS_SECRET_ACCESS_KEY: "s'ecret", AWS_SESSION_TOKEN: 'session' })
    expect(sql).toContain("KEY_ID 'key', SECRET 's''ecret', SESSION_TOKEN 'session', REGION 'eu-central-1'")
    const files = {
      AWS_SECRET_ACCESS_KEY_FILE: writeTempFile("s'ecret\n"),
      AWS_SESSION_TOKEN_FILE: writeTempFile('session\r\n'),
    }
    expect(storageSecretSql({ ...keys, ...files })).toBe(sql)
    expect(storageSecretSql({})).toBeUndefined()
  })

  const missing = newTempPath('secret')
  const empty = writeTempFile('\n')
  it.each<[Readonly<Record<string, string>>, string]>([
    [{ AWS_SECRET_ACCESS_KEY_FILE: missing }, `The AWS_SECRET_ACCESS_KEY_FILE file ${missing} does not exist.`],
    [{ AWS_SECRET_ACCESS_KEY_FILE: empty }, `The AWS_SECRET_ACCESS_KEY_FILE file ${empty} is empty.`],
    [{ AWS_SECRET_ACCESS_KEY_FILE: '/' }, 'The AWS_SECRET_ACCESS_KEY_FILE file / cannot be read (EISDIR).'],
    [
      { AWS_SECRET_ACCESS_KEY_FILE: empty, AWS_SECRET_ACCESS_KEY: 'hidden' },
      'AWS_SECRET_ACCESS_KEY_FILE and AWS_SECRET_ACCESS_KEY are both set. Unset one of them.',
    ],
    [
      { AWS_ENDPOINT_URL: 'minio:9000' },
      'AWS_ENDPOINT_URL is not an address. Give one such as https://storage.example.com.',
    ],
    [
      { AWS_ENDPOINT_URL: 'my storage' },
      'AWS_ENDPOINT_URL is not an address. Give one such as https://storage.example.com.',
    ],
  ])('of %j is refused with what is wrong', (env, message) => {
    expect(() => storageSecretSql({ ...keys, ...env })).toThrow(message)
  })
})

it.each([
  'dbname=lake password=s3cret host=db',
  "dbname=lake PASSWORD = 's3 cr\\'et s3cret' host=db",
  'dbname=lake password=pass\\ s3cret host=db',
  'postgresql://user:s3cret@db/lake',
  'postgresql://user:p@s3cret@db/lake',
  'postgresql://user:p s3cret@db/lake',
  'postgresql://me@home:s3/cret@db/lake',
  'dbname=lake pasword=s3cret host=db',
  'dbname=lake passwd=s3cret',
  'postgresql://db/lake?user=a&password=s3cret',
])('shows the address %s without its password', (address) => {
  expect(describeLake(`ducklake:postgres:${address}`)).not.toMatch(/s3|cret/)
  const failure = lakeErrorFailure('the lake', new Error(`IO Error: Unable to connect to Postgres at "${address}": no`))
  expect(failure).toMatchObject({ _tag: 'Transient' })
  expect(JSON.stringify(failure)).not.toMatch(/s3|cret/)
})

it('says that PostgreSQL does not know a key of the address', () => {
  const error = new Error(
    'IO Error: Unable to connect to Postgres at "pasword=s3cret": invalid connection option "pasword"',
  )
  expect(lakeErrorFailure('the lake', error)).toMatchObject({
    _tag: 'Config',
    message: expect.stringMatching(/^the lake: PostgreSQL does not know a key/),
  })
})

it('says that the folder for its rows cannot be made', () => {
  for (const path of ['', writeTempFile('a file'), `${writeTempFile('a file')}/folder`])
    expect(() => makeDataFolder('the lake', path)).toThrow(
      /^the lake: the folder of --data .*cannot be made \((ENOENT|EEXIST|ENOTDIR)\)/,
    )
})
