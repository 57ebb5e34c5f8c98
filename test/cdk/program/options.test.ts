import { describe, expect, it } from 'vitest'
import { defineCommand } from '../../../connector/cdk/program/command'
import { CommandError } from '../../../connector/cdk/program/error'
import { formatHelp, parseOptions } from '../../../connector/cdk/program/options'

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

  it('answers a wrong option with the right one, also with a value', () => {
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
