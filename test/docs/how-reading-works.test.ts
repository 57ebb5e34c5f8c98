import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'

const root = join(__dirname, '../..')
const page = readFileSync(join(root, 'docs/how-reading-works.md'), 'utf8')
const listFiles = (folder: string): ReadonlyArray<string> => readdirSync(join(root, folder))

describe('docs/how-reading-works.md', () => {
  it('names files that exist', () => {
    const named = [...page.matchAll(/`((?:connector|test)\/[\w./-]+)`/g)].map(([, path = '']) => path)
    expect(named.length).toBeGreaterThan(2)
    expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([])
  })

  it('names files of the room', () => {
    const section = page.slice(page.indexOf('## Where it is in the code'))
    const named = [...section.matchAll(/`([\w-]+\.ts)`/g)].map(([, file = '']) => file)
    expect(named.length).toBeGreaterThan(8)
    expect(listFiles('connector/reading')).toEqual(expect.arrayContaining(named))
  })

  it('gives messages that the room has', () => {
    const code = listFiles('connector/reading')
      .map((file) => readFileSync(join(root, 'connector/reading', file), 'utf8').replaceAll(/\$\{[^}]*\}/g, '…'))
      .join('\n')
    const section = page.slice(page.indexOf('## INCOMPLETE messages'), page.indexOf('## Where it is'))
    const messages = [...section.matchAll(/^\| `([^`]+)`/gm)].map(([, message = '']) => message)
    expect(messages.length).toBeGreaterThan(6)
    const pieces = messages.flatMap((message) => message.replace('14 times', '… times').split('…'))
    expect(pieces.filter((piece) => !code.includes(piece.trim()))).toEqual([])
  })
})
