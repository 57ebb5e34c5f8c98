import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { buildFolder } from '../../support/build'

const program = `
const { axios } = require(${JSON.stringify(join(buildFolder, 'api', 'axios'))})
console.log(JSON.stringify({
  loaded: process.moduleLoadList.some((name) => name.includes('undici')),
  has: axios.getAdapter('http') instanceof Function,
  globals: ['fetch', 'Request', 'Response', 'FormData', 'Headers'].map((name) => typeof globalThis[name]),
}))`

test('is loaded without the fetch of Node, which is there all the same', () => {
  expect(JSON.parse(execFileSync(process.execPath, ['--eval', program], { encoding: 'utf8' }))).toEqual({
    loaded: false,
    has: true,
    globals: ['function', 'function', 'function', 'function', 'function'],
  })
})
