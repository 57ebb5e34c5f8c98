import { spawnSync } from 'node:child_process'
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import * as E from 'fp-ts/Either'
import { describe, expect, it } from 'vitest'
import type { Message } from '../../../connector/cdk/message'
import type { DeadLetter } from '../../../connector/cdk/write/dead-letters'
import { openResend, type Resend } from '../../../connector/cdk/write/resend'

const letter = {
  stream: 'shop.visits',
  object: 'visits',
  primary_key: [['id']],
  deletes: false,
  key: null,
  reason: 'wrong',
  batch: null,
  when: 'then',
}
const lineOf = (id: number, more: object = {}): string => `${JSON.stringify({ ...letter, ...more, record: { id } })}\n`
const newFile = (text: string): string => {
  const path = join(mkdtempSync(join(tmpdir(), 'resend-')), 'rejected.jsonl')
  writeFileSync(path, text)
  return path
}
const openOf = async (path: string): Promise<Resend> => {
  const opened = await openResend(path, ['places', 'visits'])()
  if (E.isLeft(opened)) throw new Error(opened.left.message)
  return opened.right
}
const readMessages = async ({ input }: Resend): Promise<ReadonlyArray<Message>> => {
  const messages: Array<Message> = []
  for await (const each of input(new AbortController().signal)) if (E.isRight(each)) messages.push(...each.right)
  return messages
}
const readRecords = async (resend: Resend): Promise<ReadonlyArray<string>> =>
  (await readMessages(resend)).flatMap((message) =>
    message._tag === 'Records'
      ? message.rows.map(({ value, json }) => {
          expect(JSON.parse(Buffer.from(json).toString())).toEqual(value)
          return `${message.stream} ${value?.id}`
        })
      : [],
  )
const rejectedLetter: DeadLetter = {
  stream: 'shop.visits',
  object: 'visits',
  primaryKey: [['id']],
  deletes: false,
  key: null,
  reason: 'still wrong',
  batch: null,
  when: 0,
  record: Buffer.from('{"id":2}'),
}
const rejectedLine = lineOf(2, { reason: 'still wrong', when: '1970-01-01T00:00:00.000Z' })

/** Rejects a letter again and replaces the file. */
const finish = async ({ deadLetters, replaceFile, close }: Resend) => {
  deadLetters.add(rejectedLetter)
  await deadLetters.flush()
  const replaced = await replaceFile()
  await close()
  return replaced
}
const filesBeside = (path: string) => readdirSync(dirname(path))

describe('a file of dead letters that is sent again', () => {
  it('brings its records as their streams brought them, those of the first object first', async () => {
    const path = newFile(lineOf(1) + lineOf(2) + lineOf(3, { stream: 'places', object: 'places', deletes: true }))
    const resend = await openOf(path)
    expect(resend.streams).toMatchObject([
      { id: 'shop.visits', origin: 'shop.visits', objectName: 'visits', key: [['id']], isDeletion: false },
      { id: 'places', origin: 'places', objectName: 'places', key: [['id']], isDeletion: true },
    ])
    expect(await readRecords(resend)).toEqual(['places 3', 'shop.visits 1', 'shop.visits 2'])
    expect((await readMessages(resend)).at(-1)).toMatchObject({ _tag: 'Finished', extent: 'changes' })
    await resend.close()
  })

  it('keeps streams of one name apart that differ in key, object or mode', async () => {
    const others = [{ primary_key: [] }, { deletes: true }, { object: 'places' }, {}]
    const resend = await openOf(newFile(lineOf(0) + others.map((more, n) => lineOf(n + 1, more)).join('')))
    expect(resend.streams.map(({ id, origin }) => [id, origin])).toEqual(
      ['', ' (2)', ' (3)', ' (4)'].map((number) => [`shop.visits${number}`, 'shop.visits']),
    )
    expect(await readRecords(resend)).toEqual([
      'shop.visits (4) 3',
      'shop.visits 0',
      'shop.visits (2) 1',
      'shop.visits (3) 2',
      'shop.visits 4',
    ])
    await resend.close()
  })

  it('has what was rejected again, lines that are not letters, and what came meanwhile', async () => {
    const cut = '{"stream":"shop.visits","object":"vis\n'
    const noKey = lineOf(7).replace('"primary_key"', '"other"')
    const path = newFile(lineOf(1) + cut + lineOf(2) + noKey + lineOf(3).trimEnd())
    const resend = await openOf(path)
    expect(resend.unreadable).toBe(2)
    appendFileSync(path, `\n${lineOf(4)}`)
    expect(await readRecords(resend)).toEqual(['shop.visits 1', 'shop.visits 2', 'shop.visits 3'])
    appendFileSync(path, lineOf(5))
    expect(E.isRight(await finish(resend))).toBe(true)
    expect(readFileSync(path, 'utf8')).toBe(`${cut}${noKey}${rejectedLine}\n${lineOf(4)}${lineOf(5)}`)
    expect(statSync(path).mode & 0o777).toBe(0o600)
    expect(filesBeside(path)).toEqual(['rejected.jsonl'])
  })

  it('keeps a line whose end is written later', async () => {
    const [start, rest] = [lineOf(4).slice(0, 20), lineOf(4).slice(20)]
    const path = newFile(lineOf(1) + start)
    const resend = await openOf(path)
    expect(await readRecords(resend)).toEqual(['shop.visits 1'])
    appendFileSync(path, rest)
    await finish(resend)
    expect(readFileSync(path, 'utf8')).toBe(rejectedLine + lineOf(4))
  })

  it('is as it was until it is replaced, whatever a killed run has left beside it', async () => {
    const path = newFile(lineOf(1) + lineOf(2))
    writeFileSync(`${path}.resend`, lineOf(9))
    const resend = await openOf(path)
    resend.deadLetters.add(rejectedLetter)
    await resend.deadLetters.flush()
    expect(readFileSync(path, 'utf8')).toBe(lineOf(1) + lineOf(2))
    await resend.close()
    expect([readFileSync(path, 'utf8'), filesBeside(path)]).toEqual([lineOf(1) + lineOf(2), ['rejected.jsonl']])
    await finish(await openOf(path))
    expect(readFileSync(path, 'utf8')).toBe(rejectedLine)
  })

  it('is not replaced where another run has replaced it, or sends it too', async () => {
    const path = newFile(lineOf(1))
    const first = await openOf(path)
    const second = await openOf(path)
    expect(await finish(first)).toMatchObject({ left: { _tag: 'Transient' } })
    expect(readFileSync(path, 'utf8')).toBe(lineOf(1))
    writeFileSync(`${path}.new`, lineOf(6))
    renameSync(`${path}.new`, path)
    expect(await finish(second)).toMatchObject({ left: { _tag: 'Transient' } })
    expect([readFileSync(path, 'utf8'), filesBeside(path)]).toEqual([lineOf(6), ['rejected.jsonl']])
  })

  it('may be reached by a link, which stays', async () => {
    const path = newFile(lineOf(1))
    const link = join(mkdtempSync(join(tmpdir(), 'link-')), 'link.jsonl')
    symlinkSync(path, link)
    await finish(await openOf(link))
    expect([readFileSync(path, 'utf8'), readFileSync(link, 'utf8')]).toEqual([rejectedLine, rejectedLine])
    expect(filesBeside(link)).toEqual([basename(link)])
  })

  it.each(['', '\n \n'])('may have nothing to send: %j', async (text) => {
    const resend = await openOf(newFile(text))
    expect([resend.streams, resend.unreadable, await readRecords(resend)]).toEqual([[], 0, []])
    await resend.close()
  })

  const folder = mkdtempSync(join(tmpdir(), 'resend-'))
  mkdirSync(join(folder, 'folder'))
  spawnSync('mkfifo', [join(folder, 'pipe')])
  writeFileSync(join(folder, 'config.json'), '{"base_url":"https://x.example"}\n')
  it.each([
    ['missing.jsonl', 'does not exist'],
    ['folder', 'is not a file'],
    ['pipe', 'is not a file'],
    ['config.json', 'No line of'],
    ['config.json/x', 'is not a folder'],
  ])('is named where it cannot be: %s', async (name, problem) => {
    const path = join(folder, name)
    const opened = await openResend(path, ['visits'])()
    expect(opened).toMatchObject({ left: { _tag: 'Config', message: expect.stringContaining(problem) } })
    expect(E.isLeft(opened) && opened.left.message).toContain(path)
    expect(readdirSync(folder).sort()).toEqual(['config.json', 'folder', 'pipe'])
  })
})
