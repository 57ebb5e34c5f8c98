import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as E from 'fp-ts/Either'
import { describe, expect, it } from 'vitest'
import { readJsonFile, readStateFile } from '../../connector/cdk/file'

const folder = mkdtempSync(join(tmpdir(), 'file-'))
const file = (text: string | Uint8Array) => {
  const path = join(folder, `${Math.random()}.txt`)
  writeFileSync(path, text)
  return path
}

describe('readJson', () => {
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
  ])('says what is wrong with %s', async (_, path, expected) => {
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

  it('refuses half a line', async () => {
    expect(await readStateFile(file('{"type":"STATE"}\n{"type"'))()).toMatchObject({
      _tag: 'Left',
      left: { _tag: 'Config' },
    })
  })
})
