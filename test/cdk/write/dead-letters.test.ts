import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import {
  copyDeadLetters,
  type DeadLetter,
  noDeadLetters,
  openDeadLetterFile,
  syncFolder,
} from '../../../connector/cdk/write/dead-letters'

const letterOf = (record: string, more: Partial<DeadLetter> = {}): DeadLetter => ({
  stream: 's',
  object: 'things',
  primaryKey: [['id']],
  deletes: false,
  key: 'k',
  reason: 'wrong',
  when: 0,
  batch: 1,
  record: Buffer.from(record),
  ...more,
})
const textOf = (record: string, key = '"k"', batch = '1') =>
  `{"stream":"s","object":"things","primary_key":[["id"]],"deletes":false,` +
  `"key":${key},"reason":"wrong","batch":${batch},"when":"1970-01-01T00:00:00.000Z","record":${record}}\n`

/** A test whose failure may have changed the permissions of /dev/null, which are restored. */
const withDevice = (body: () => Promise<void>) => async (): Promise<void> => {
  const { mode } = statSync('/dev/null')
  try {
    await body()
  } finally {
    if (statSync('/dev/null').mode !== mode) chmodSync('/dev/null', mode & 0o777)
  }
}

describe('the dead-letter file', () => {
  it('holds each record as it came, in order, after what it held before', async () => {
    const path = join(mkdtempSync(join(tmpdir(), 'letters-')), 'rejected.jsonl')
    const letters = openDeadLetterFile(path)
    letters.add(letterOf('{"n":9007199254740993, "a":"é"}'))
    letters.add(letterOf('{}', { key: null, batch: null }))
    await letters.flush()
    const first = textOf('{"n":9007199254740993, "a":"é"}') + textOf('{}', 'null', 'null')
    expect(readFileSync(path, 'utf8')).toBe(first)
    const again = openDeadLetterFile(path)
    again.add(letterOf('[]'))
    await Promise.all([again.flush(), again.flush()])
    expect(readFileSync(path, 'utf8')).toBe(first + textOf('[]'))
  })

  it('may be read by its owner only', async () => {
    const path = join(mkdtempSync(join(tmpdir(), 'letters-')), 'rejected.jsonl')
    const letters = openDeadLetterFile(path)
    letters.add(letterOf('{}'))
    await letters.flush()
    expect(statSync(path).mode & 0o777).toBe(0o600)
  })

  it('is closed to others though it was not, with and without new letters', async () => {
    for (const records of [[], ['{}']]) {
      const path = join(mkdtempSync(join(tmpdir(), 'letters-')), 'rejected.jsonl')
      writeFileSync(path, textOf('{}'))
      chmodSync(path, 0o644)
      const letters = openDeadLetterFile(path)
      for (const record of records) letters.add(letterOf(record))
      await letters.flush()
      expect(statSync(path).mode & 0o777).toBe(0o600)
    }
  })

  it.each(['{"stream":"s","object":"thi', `${textOf('{}')}{`, 'x', '\n'])(
    'holds each letter on its own line after a truncated line: %j',
    async (before) => {
      const path = join(mkdtempSync(join(tmpdir(), 'letters-')), 'rejected.jsonl')
      writeFileSync(path, before)
      const letters = openDeadLetterFile(path)
      for (const record of ['{"a":1}', '{"a":2}']) {
        letters.add(letterOf(record))
        await letters.flush()
      }
      const separator = before.endsWith('\n') ? '' : '\n'
      expect(readFileSync(path, 'utf8')).toBe(`${before}${separator}${textOf('{"a":1}')}${textOf('{"a":2}')}`)
    },
  )

  it('has the letters also where another file takes its place while they are written', async () => {
    const path = join(mkdtempSync(join(tmpdir(), 'letters-')), 'rejected.jsonl')
    writeFileSync(path, textOf('{"a":1}'))
    const handle = await open('/dev/null')
    const proto = Object.getPrototypeOf(handle)
    await handle.close()
    const append = vi.spyOn(proto, 'appendFile').mockImplementationOnce(async function (this: unknown, text: unknown) {
      // As a run with --resend does it between the opening of the file and the write.
      writeFileSync(`${path}.resend`, textOf('{"a":0}'))
      renameSync(`${path}.resend`, path)
      append.mockRestore()
      await proto.appendFile.call(this, text)
    })
    const letters = openDeadLetterFile(path)
    letters.add(letterOf('{"a":2}'))
    await letters.flush()
    expect(readFileSync(path, 'utf8')).toBe(textOf('{"a":0}') + textOf('{"a":2}'))
  })

  it(
    'is brought to the disk with every flush, its name once a run, and is not left open; a device is not',
    withDevice(async () => {
      const path = join(mkdtempSync(join(tmpdir(), 'letters-')), 'rejected.jsonl')
      const handle = await open('/dev/null')
      const sync = vi.spyOn(Object.getPrototypeOf(handle), 'sync')
      await handle.close()
      const syncs: number[] = []
      for (const target of [path, path, '/dev/null']) {
        const letters = openDeadLetterFile(target)
        for (const record of ['{"a":1}', '{"a":2}', '{"a":3}']) {
          letters.add(letterOf(record))
          await letters.flush()
        }
        syncs.push(sync.mock.calls.length)
      }
      sync.mockRestore()
      expect(syncs).toEqual([4, 8, 8])
      const links = readdirSync('/proc/self/fd').map((name) => join('/proc/self/fd', name))
      expect(links.filter((link) => existsSync(link) && readlinkSync(link) === path)).toEqual([])
    }),
  )

  it('is not created without a letter', async () => {
    const path = join(mkdtempSync(join(tmpdir(), 'letters-')), 'rejected.jsonl')
    await openDeadLetterFile(path).flush()
    expect(existsSync(path)).toBe(false)
  })

  it('holds null for a record that is not known', async () => {
    const path = join(mkdtempSync(join(tmpdir(), 'letters-')), 'rejected.jsonl')
    const letters = openDeadLetterFile(path)
    letters.add(letterOf(''))
    await letters.flush()
    expect(readFileSync(path, 'utf8')).toBe(textOf('null'))
  })

  it('rejects if it cannot be written', async () => {
    const letters = openDeadLetterFile(join(tmpdir(), 'no-such-folder', 'rejected.jsonl'))
    letters.add(letterOf('{}'))
    await expect(letters.flush()).rejects.toThrow('ENOENT')
  })

  it('goes on after a failure only with an error, since letters are lost', async () => {
    const letters = openDeadLetterFile(join(tmpdir(), 'no-such-folder', 'rejected.jsonl'))
    letters.add(letterOf('{}'))
    await expect(letters.flush()).rejects.toThrow('ENOENT')
    await expect(letters.flush()).rejects.toThrow('ENOENT')
  })

  it('holds the bytes of the record alone, though they are a part of others', async () => {
    const path = join(mkdtempSync(join(tmpdir(), 'letters-')), 'rejected.jsonl')
    const letters = openDeadLetterFile(path)
    const whole = new TextEncoder().encode('[{"a":1},2]')
    letters.add({ ...letterOf(''), record: whole.subarray(1, 8) })
    await letters.flush()
    expect(readFileSync(path, 'utf8')).toBe(textOf('{"a":1}'))
  })

  it('is left as it is where it was private', async () => {
    const path = join(mkdtempSync(join(tmpdir(), 'letters-')), 'rejected.jsonl')
    writeFileSync(path, '')
    chmodSync(path, 0o400)
    await openDeadLetterFile(path).flush()
    expect(statSync(path).mode & 0o777).toBe(0o400)
  })

  it('keeps the permissions that it gets while the run writes', async () => {
    const path = join(mkdtempSync(join(tmpdir(), 'letters-')), 'rejected.jsonl')
    const letters = openDeadLetterFile(path)
    letters.add(letterOf('{}'))
    await letters.flush()
    chmodSync(path, 0o640)
    letters.add(letterOf('{}'))
    await letters.flush()
    expect(statSync(path).mode & 0o777).toBe(0o640)
  })

  it(
    'may be a device',
    withDevice(async () => {
      const letters = openDeadLetterFile('/dev/null')
      letters.add(letterOf('{}'))
      await letters.flush()
      expect(statSync('/dev/null').mode & 0o777).toBe(0o666)
    }),
  )

  it('is none if nothing is kept', async () => {
    expect([noDeadLetters.add(letterOf('{}')), await noDeadLetters.flush()]).toEqual([undefined, undefined])
  })
})

describe('a copy of a file of dead letters', () => {
  const large = textOf(JSON.stringify('x'.repeat(200_000)))
  const lines: ReadonlyArray<readonly [line: string, key?: string | null]> = [
    ['\n'],
    [textOf('{"a":1}'), 'k'],
    [large, 'k'],
    [textOf('{"a":2}', 'null'), null],
    [textOf('{"a":3}', '7'), null],
    ['{"stream":"s","object":"things","key":"k","rea\n'],
    ...['stream', 'object', 'reason'].map((name) => [textOf('{"a":4}').replace(`"${name}":`, '"no":')] as const),
    ['null\n'],
    [textOf('{"a":5}').trimEnd(), 'k'],
  ]
  const copyLines = async (isLeftOut: (text: string) => boolean) => {
    const folder = mkdtempSync(join(tmpdir(), 'letters-'))
    const [from, to] = [join(folder, 'from.jsonl'), join(folder, 'to.jsonl')]
    writeFileSync(from, lines.map(([line]) => line).join(''))
    const seen: unknown[] = []
    const counts = await copyDeadLetters(from, to, (letter, text) => {
      seen.push([text, ...(letter === undefined ? [] : [letter.key]), letter?.object])
      return isLeftOut(text)
    })
    const links = readdirSync('/proc/self/fd').map((name) => join('/proc/self/fd', name))
    expect(links.filter((link) => existsSync(link) && readlinkSync(link) === to)).toEqual([])
    return { counts, seen, copy: readFileSync(to, 'utf8'), mode: statSync(to).mode & 0o777 }
  }

  it('has each line as it is, and names the key of those that are letters', async () => {
    const { counts, seen, copy, mode } = await copyLines(() => false)
    expect(counts).toEqual({ letters: 5, leftOut: 0 })
    expect(seen).toEqual(lines.map(([line, ...key]) => [line, ...key, key.length === 0 ? undefined : 'things']))
    expect(copy).toBe(lines.map(([line]) => line).join(''))
    expect(mode).toBe(0o600)
  })

  it('has no line after the last one', async () => {
    const from = join(mkdtempSync(join(tmpdir(), 'letters-')), 'from.jsonl')
    writeFileSync(from, textOf('{}'))
    expect(await copyDeadLetters(from, `${from}.copy`, () => true)).toEqual({ letters: 1, leftOut: 1 })
  })

  it('lacks the lines that are left out, whatever they are', async () => {
    const isLeftOut = (text: string) => text === large || text === 'null\n'
    const { counts, copy } = await copyLines(isLeftOut)
    expect(counts).toEqual({ letters: 5, leftOut: 2 })
    expect(copy).toBe(lines.flatMap(([line]) => (isLeftOut(line) ? [] : [line])).join(''))
  })
})

it('a folder that cannot be opened is not brought to the disk', () =>
  expect(syncFolder('/no/such/folder/file')).resolves.toBeUndefined())
