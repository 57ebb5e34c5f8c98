import { expect, it } from 'vitest'
import { showsColors } from '../../../connector/cdk/program/terminal'

it.each<[boolean | undefined, Record<string, string>, boolean]>([
  [true, {}, true],
  [true, { NO_COLOR: '' }, true],
  [true, { NO_COLOR: '1' }, false],
  [true, { NO_COLOR: '0' }, false],
  [true, { TERM: 'dumb' }, false],
  [false, {}, false],
  [undefined, {}, false],
])('a program shows colors where stdout is a terminal (%s) with %j: %s', (isTTY, env, expected) => {
  const stdout = { isTTY } as NodeJS.Process['stdout']
  expect(showsColors({ stdout, env })).toBe(expected)
})
