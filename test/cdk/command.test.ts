import { describe, expect, it } from 'vitest'
import { CommandError, defineCommand, findNearestName, formatHelp, parseOptions } from '../../connector/cdk/command'
import { createTestIo, toInput } from '../support/command-io'

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
