import { describe, expect, it } from 'vitest'
import { defineCommand } from '../../../connector/cdk/program/command'
import { createTestIo, toInput } from '../../support/command-io'

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
