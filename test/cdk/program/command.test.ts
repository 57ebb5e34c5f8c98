import { describe, expect, it } from 'vitest'
import { defineCommand } from '../../../connector/cdk/program/command'
import { CommandError } from '../../../connector/cdk/program/error'
import { findNearestName } from '../../../connector/cdk/program/names'
import { formatHelp, parseOptions } from '../../../connector/cdk/program/options'
import { createProgressPrinter } from '../../../connector/cdk/program/progress'
import { createTestIo, toInput } from '../../support/command-io'

const command = defineCommand({
  name: 'sync',
  summary: 'Reads.',
  options: {
    config: { type: 'string', value: 'FILE', help: 'The configuration', required: true },
    'full-refresh': { type: 'boolean', help: 'Read everything again' },
  },
  examples: ['feedback sync --config c.json'],
  run: async () => 0,
})

const failure = (args: ReadonlyArray<string>, of = command) => {
  try {
    parseOptions('feedback', of, args)
  } catch (error) {
    if (error instanceof CommandError) return error.failure
  }
  return undefined
}

describe('parseOptions', () => {
  it('returns options and operands', () => {
    expect(parseOptions('feedback', command, ['--config', 'c.json', '--full-refresh'])).toEqual({
      options: { config: 'c.json', 'full-refresh': true },
      positionals: [],
    })
    expect(parseOptions('feedback', { ...command, operands: 'SQL' }, ['--config=c', 'SELECT 1']).positionals).toEqual([
      'SELECT 1',
    ])
  })

  it.each([
    [[], '--config is missing'],
    [['--config'], '--config'],
    [['--config', 'c', '--nope'], '--nope'],
    [['--config', 'c', 'extra'], 'extra'],
  ])('names what is wrong in %j', (args, expected) => {
    expect(failure(args)).toMatchObject({ _tag: 'Config' })
    expect(failure(args)?.message).toContain(expected)
    expect(failure(args)?.message).toContain('feedback sync --help')
  })
})

describe('a wrong name', () => {
  const names = ['config', 'full-refresh', 'select', 'start_date', 'db', 'history']

  it.each([
    ['confg', 'config'],
    ['cofnig', 'config'],
    ['fullrefresh', 'full-refresh'],
    ['full_refresh', 'full-refresh'],
    ['startDate', 'start_date'],
    ['STRAT_DATE', 'start_date'],
    ['selects', 'select'],
    ['hist', 'history'],
    ['bd', 'db'],
  ])('%s was probably meant to be %s', (word, name) => expect(findNearestName(word, names)).toBe(name))

  it.each(['', 'x', 'page', 'toString', 'zzzzzzzz'])('%j is near none', (word) =>
    expect(findNearestName(word, names)).toBeUndefined(),
  )

  it('of an option is answered with the right one, also with a value', () => {
    for (const arg of ['--fullrefresh', '--full-refesh=yes', '--full-refreshh'])
      expect(failure(['--config', 'c', arg])?.message).toMatch(
        /^feedback sync: there is no option --full[\w-]+\. Did you mean --full-refresh\? See feedback sync --help\.$/,
      )
    expect(failure(['--config', 'c', '--nope'])?.message).toBe(
      'feedback sync: there is no option --nope. See feedback sync --help.',
    )
  })
})

it('the help of a command shows usage, options and examples', () => {
  expect(formatHelp('feedback', command)).toBe(
    [
      'Usage: feedback sync [options]',
      '',
      'Reads.',
      '',
      'Options:',
      '  --config FILE   The configuration (required)',
      '  --full-refresh  Read everything again',
      '',
      'Examples:',
      '  feedback sync --config c.json',
      '',
    ].join('\n'),
  )
})

describe('defineCommand', () => {
  it('gives options the values that their declaration promises', async () => {
    let parsed: unknown
    const command = defineCommand({
      name: 'x',
      summary: 'X.',
      options: {
        flag: { type: 'boolean', help: '' },
        text: { type: 'string', help: '' },
        needed: { type: 'string', help: '', required: true },
        list: { type: 'string', help: '', multiple: true },
      },
      run: async (_io, { options }) => {
        // Compiles only where the types follow from the declaration.
        const { flag, text, needed, list }: Options = options
        parsed = { flag, text, needed, list }
        return 0
      },
    })
    type Options = {
      readonly flag: boolean
      readonly text: string | undefined
      readonly needed: string
      readonly list: ReadonlyArray<string>
    }
    const io = createTestIo(toInput(''), async () => undefined)
    await command.run(io, 'feedback', ['--needed', 'a'])
    expect(parsed).toEqual({ flag: false, text: undefined, needed: 'a', list: [] })
    await command.run(io, 'feedback', ['--flag', '--text=b', '--text=c', '--needed=d', '--list=e', '--list=f'])
    expect(parsed).toEqual({ flag: true, text: 'c', needed: 'd', list: ['e', 'f'] })
  })
})

describe('createProgressPrinter', () => {
  const print = (columns: number | undefined, calls: ReadonlyArray<readonly [at: number, line: string]>) => {
    let at = 0
    const written: string[] = []
    const progress = createProgressPrinter({
      columns: () => columns,
      write: (text) => void written.push(text),
      now: () => at,
    })
    for (const [time, line] of calls) {
      at = time
      progress.print(line)
    }
    return written
  }

  it('redraws at most five times in any second on a terminal, however often it is called', () => {
    const written = print(
      80,
      Array.from({ length: 1_700 }, (_, i) => [i * 6, `${i} rows`] as const),
    )
    expect(written.length).toBeGreaterThan(40)
    expect(written.length).toBeLessThanOrEqual(10_200 / 200 + 1)
  })

  it('clears the line, only where one is drawn', () => {
    expect(
      print(80, [
        [0, 'a'],
        [1, ''],
        [2, ''],
      ]),
    ).toEqual(['\r\x1b[Ka', '\r\x1b[K'])
    expect(print(80, [[0, '']])).toEqual([])
  })

  it('holds a line back on a terminal until the run has taken its time, and draws the newest one then', () => {
    let at = 0
    const written: string[] = []
    const progress = createProgressPrinter({
      columns: () => 80,
      write: (text) => void written.push(text),
      now: () => at,
    })
    for (const [i, time] of [0, 1_000, 1_900].entries()) {
      at = time
      progress.print(`check ${i + 1}`, 2_000)
      progress.repeat()
    }
    expect(written).toEqual([])
    for (at = 2_000; at < 9_000; at += 500) progress.repeat()
    expect(written).toEqual(['\r\x1b[Kcheck 3'])
  })

  it('draws the last of several lines that come at once, and none after they were cleared', () => {
    let at = 0
    const written: string[] = []
    const progress = createProgressPrinter({
      columns: () => 80,
      write: (text) => void written.push(text),
      now: () => at,
    })
    for (const line of ['a', 'b', 'c']) progress.print(line)
    for (at = 0; at < 2_000; at += 100) progress.repeat()
    expect(written).toEqual(['\r\x1b[Ka', '\r\x1b[Kc'])
    for (const line of ['d', 'e', '']) progress.print(line)
    for (; at < 4_000; at += 100) progress.repeat()
    expect(written.slice(2)).toEqual(['\r\x1b[Kd', '\r\x1b[K'])
  })

  it('never lets a line wrap', () => {
    const [text = ''] = print(20, [[0, 'x'.repeat(100)]])
    expect(text.replace('\r\x1b[K', '')).toBe(`${'x'.repeat(18)}…`)
  })

  it('elsewhere prints a line with its time a minute, the first after a minute, and clears nothing', () => {
    const calls = Array.from({ length: 300 }, (_, second) => [second * 1000, `${second} rows`] as const)
    expect(print(undefined, [...calls, [300_000, '']])).toEqual(
      [60, 120, 180, 240].map((second) => `1970-01-01T00:0${second / 60}:00.000Z ${second} rows\n`),
    )
  })

  it('repeats the last line elsewhere, once a minute, until it is cleared', () => {
    let at = 0
    const written: string[] = []
    const { print, repeat } = createProgressPrinter({
      columns: () => undefined,
      write: (text) => void written.push(text),
      now: () => at,
    })
    print('waiting')
    for (at = 0; at < 150_000; at += 5_000) repeat()
    print('')
    for (; at < 300_000; at += 5_000) repeat()
    expect(written).toEqual(['1970-01-01T00:01:00.000Z waiting\n', '1970-01-01T00:02:00.000Z waiting\n'])
  })
})
