import { describe, expect, it } from 'vitest'
import { CommandError, defineCommand, formatHelp, parseOptions } from '../../connector/cdk/command'

const verb = defineCommand({
  name: 'sync',
  summary: 'Reads.',
  options: {
    config: { type: 'string', value: 'FILE', help: 'The configuration', required: true },
    'full-refresh': { type: 'boolean', help: 'Read everything again' },
  },
  examples: ['feedback sync --config c.json'],
  run: async () => 0,
})

const failure = (args: ReadonlyArray<string>, of = verb) => {
  try {
    parseOptions('feedback', of, args)
  } catch (error) {
    if (error instanceof CommandError) return error.failure
  }
  return undefined
}

describe('parse', () => {
  it('answers options and operands', () => {
    expect(parseOptions('feedback', verb, ['--config', 'c.json', '--full-refresh'])).toEqual({
      options: { config: 'c.json', 'full-refresh': true },
      positionals: [],
    })
    expect(parseOptions('feedback', { ...verb, operands: 'SQL' }, ['--config=c', 'SELECT 1']).positionals).toEqual([
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

it('help shows usage, options and examples', () => {
  expect(formatHelp('feedback', verb)).toBe(
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
