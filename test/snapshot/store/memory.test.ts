import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { memoryFailure } from '../../../connector/snapshot/store/failures'
import {
  chooseMemoryLimit,
  createMemorySetter,
  formatMemorySize,
  leastMemory,
  listMemorySteps,
  parseMemorySize,
  readMachineMemory,
} from '../../../connector/snapshot/store/memory'
import { draws } from '../../support/draws'

describe('a size of memory', () => {
  it.each([
    ['512MB', 512_000_000],
    ['1GiB', 2 ** 30],
    ['1.5 GB', 1_500_000_000],
    ['16mb', 16_000_000],
    ['100mib', 100 * 2 ** 20],
    ['1TB', 1e12],
  ])('%s is %i bytes', (text, bytes) => expect(parseMemorySize(text)).toBe(bytes))

  it.each([
    '',
    '512',
    '-1GB',
    '1 kB',
    '15.9MB',
    '0GB',
    '1GBs',
    '80%',
    '1e3MB',
    'lots',
    '9999999TB',
    '1,5GB',
    'Infinity',
  ])('%j is none', (text) => expect(parseMemorySize(text)).toBeUndefined())

  it('is printed as it can be given again', () => {
    expect([2 ** 30, 512e6, 3 * 2 ** 29, 1.5e9, 2 ** 30 + 1].map(formatMemorySize)).toEqual([
      '1GiB',
      '512MB',
      '1536MiB',
      '1500MB',
      '1073MB',
    ])
    fc.assert(
      fc.property(fc.integer({ min: leastMemory, max: 1e15 }), (bytes) => {
        const again = parseMemorySize(formatMemorySize(bytes)) ?? 0
        expect(again).toBeLessThanOrEqual(bytes)
        expect(again).toBeGreaterThan(bytes - 1e6)
      }),
      draws(100),
    )
  })
})

describe('the memory of a machine', () => {
  const machine = (files: Readonly<Record<string, string>>) =>
    readMachineMemory((path) => {
      const text = files[path]
      if (text === undefined) throw new Error(`ENOENT: ${path}`)
      return text
    }, 8e9)

  it.each<[string, Readonly<Record<string, string>>, number]>([
    ['no control groups', {}, 8e9],
    ['version 2 in a container', { '/proc/self/cgroup': '0::/\n', '/sys/fs/cgroup/memory.max': '512000000\n' }, 512e6],
    ['version 2 without a limit', { '/proc/self/cgroup': '0::/\n', '/sys/fs/cgroup/memory.max': 'max\n' }, 8e9],
    [
      'version 2, the limit of a parent',
      {
        '/proc/self/cgroup': '0::/system.slice/job.service\n',
        '/sys/fs/cgroup/system.slice/job.service/memory.max': 'max\n',
        '/sys/fs/cgroup/system.slice/memory.max': '2000000000\n',
      },
      2e9,
    ],
    [
      'version 1, seen from the machine',
      {
        '/proc/self/cgroup': '9:cpu,cpuacct:/docker/1\n4:memory:/docker/1\n0::/\n',
        '/sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes': '300000000\n',
        '/sys/fs/cgroup/memory/memory.limit_in_bytes': '9223372036854771712\n',
      },
      3e8,
    ],
    [
      'version 1 in a container, where its path is not to be seen',
      {
        '/proc/self/cgroup': '4:memory:/docker/1\n',
        '/sys/fs/cgroup/memory/memory.limit_in_bytes': '300000000\n',
      },
      3e8,
    ],
    [
      'a limit above the memory there is',
      { '/proc/self/cgroup': '0::/\n', '/sys/fs/cgroup/memory.max': '64000000000\n' },
      8e9,
    ],
    ['an empty file', { '/proc/self/cgroup': '0::/\n', '/sys/fs/cgroup/memory.max': '' }, 8e9],
  ])('%s', (_, files, bytes) => expect(machine(files)).toBe(bytes))

  it('leaves a quarter to DuckDB, at most 1 GiB', () => {
    expect([64e9, 4 * 2 ** 30, 2e9, 512e6, 1e6].map(chooseMemoryLimit)).toEqual([
      2 ** 30,
      2 ** 30,
      5e8,
      128e6,
      leastMemory,
    ])
    expect(chooseMemoryLimit()).toBeGreaterThanOrEqual(leastMemory)
  })

  it('is given in steps up to the limit and not beyond', () => {
    expect(listMemorySteps(96e6, 2 ** 30)).toEqual([96e6, 384e6, 2 ** 30])
    expect(listMemorySteps(96e6, 96e6)).toEqual([96e6])
    expect(listMemorySteps(96e6, 500e6, 2)).toEqual([96e6, 192e6, 384e6, 500e6])
    expect(listMemorySteps(96e6, 50e6)).toEqual([50e6])
    expect(listMemorySteps(96e6, 4e9)).toEqual([96e6, 384e6, 1536e6, 4e9])
  })
})

describe('work that runs out of memory', () => {
  const outOfMemory = () => new Error('Out of Memory Error: could not allocate block')

  it('is run again with more, in steps, and later work begins with what was enough', async () => {
    const given: number[] = []
    const attempts: Array<number | undefined> = []
    const memory = createMemorySetter(async (bytes) => void given.push(bytes), [1, 4, 9])
    const needs = (least: number) => async () => {
      attempts.push(given.at(-1))
      if ((given.at(-1) ?? 0) < least) throw outOfMemory()
      return least
    }
    expect(await memory.run(needs(1))).toBe(1)
    expect(await memory.run(needs(3))).toBe(3)
    expect(await memory.run(needs(1))).toBe(1)
    await expect(memory.run(needs(10))).rejects.toThrow('Out of Memory')
    expect(attempts).toEqual([1, 1, 4, 4, 4, 9])
    await expect(memory.run(async () => Promise.reject(new Error('Constraint Error')))).rejects.toThrow('Constraint')
    expect(given).toEqual([1, 4, 9])
  })

  it('takes one step where two run out of memory at once', async () => {
    const given: number[] = []
    const memory = createMemorySetter(async (bytes) => void given.push(bytes), [1, 2, 3], 1)
    const work = async () => {
      const had = given.at(-1) ?? 1
      await Promise.resolve()
      if (had < 2) throw outOfMemory()
      return had
    }
    expect(await Promise.all([memory.run(work), memory.run(work)])).toEqual([2, 2])
    expect(given).toEqual([2])
  })

  it('may be given all at once', async () => {
    const given: number[] = []
    const memory = createMemorySetter(async (bytes) => void given.push(bytes), [1, 2, 3], 1)
    await memory.giveAll()
    await expect(memory.run(() => Promise.reject(outOfMemory()))).rejects.toThrow('Out of Memory')
    expect(given).toEqual([3])
  })

  it('says what did not fit, the limit and what to do', () =>
    expect(memoryFailure('a.duckdb', 'the check "x"', 2 ** 30, false, 'd')).toEqual({
      _tag: 'Config',
      message:
        'a.duckdb: the check "x" needs more memory than the limit of 1GiB. Raise it with --memory-limit, ' +
        'such as 2GiB. Nothing is lost: what was committed is kept, and the same command continues from there.',
      detail: 'd',
    }))
})
