import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, vi } from 'vitest'
import { type DeadLetter, noDeadLetters, openDeadLetterFile } from '../../../connector/cdk/write/dead-letters'

const letterOf = (record: string, more: Partial<DeadLetter> = {}): DeadLetter => ({
  stream: 's',
  object: 'things',
  key: 'k',
  reason: 'wrong',
  when: 0,
  batch: 1,
  record: Buffer.from(record),
  ...more,
})
const textOf = (record: string, key = '"k"', batch = '1') =>
  `{"stream":"s","object":"things","key":${key},"reason":"wrong","batch":${batch},"when":"1970-01-01T00:00:00.000Z","record":${record}}\n`

/** A test whose failure may have changed the permissions of the machine's /dev/null, which are set back. */
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
    'holds each letter on a line of its own after a line that was cut short: %j',
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
        for (const record of ['{"a":1}', '{"a":2}']) {
          letters.add(letterOf(record))
          await letters.flush()
        }
        syncs.push(sync.mock.calls.length)
      }
      sync.mockRestore()
      expect(syncs).toEqual([3, 6, 6])
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
      const { mode } = statSync('/dev/null')
      const letters = openDeadLetterFile('/dev/null')
      letters.add(letterOf('{}'))
      await letters.flush()
      expect(statSync('/dev/null').mode).toBe(mode)
    }),
  )

  it('is none if nothing is kept', async () => {
    expect([noDeadLetters.add(letterOf('{}')), await noDeadLetters.flush()]).toEqual([undefined, undefined])
  })
})
