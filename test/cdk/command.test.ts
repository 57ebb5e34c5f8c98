import { describe, expect, it } from 'vitest'
import { CommandError, defineCommand, formatHelp, parseOptions } from '../../connector/cdk/command'
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
