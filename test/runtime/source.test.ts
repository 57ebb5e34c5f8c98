import * as E from 'fp-ts/Either'
import { expect, it } from 'vitest'
import { sourceFormat } from '../../connector/config/source'
import { createSource } from '../../connector/runtime/source'

const describeSource = (more: object): string => {
  const read = sourceFormat.decode({
    base_url: 'http://127.0.0.1:9',
    credentials: { auth_type: 'access_token', access_token: 'a-token' },
    start_date: '2024-01-01T00:00:00Z',
    ...more,
  })
  if (E.isLeft(read)) return read.left.message
  const made = createSource(read.right.config, { proxyVariables: {} })
  if (E.isLeft(made)) return made.left.message
  made.right.close()
  return 'created'
}

it.each([
  [{}, /^created$/],
  [{ partition: { index: 3, count: 4 } }, /^created$/],
  [{ partition: { index: 4, count: 4 } }, /partition\.index must be less than partition\.count \(4\)/],
  [{ mention_time_after: '2024-01-01T00:00:00Z', mention_time_before: '2024-01-01T00:00:01Z' }, /^created$/],
  [
    { mention_time_after: '2024-01-01T02:00:00+02:00', mention_time_before: '2024-01-01T00:00:00Z' },
    /mention_time_after must be earlier than mention_time_before/,
  ],
])('a config with %j gives %s', (more, answer) => {
  expect(describeSource(more)).toMatch(answer)
})
