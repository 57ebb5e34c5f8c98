import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import * as E from 'fp-ts/Either'
import { describe, expect, it } from 'vitest'
import type { CommandIo } from '../../connector/cdk/command'
import { parseExactJson } from '../../connector/cdk/json/exact'
import { decodeSinger } from '../../connector/cdk/singer/decode'
import { decodeDestinationConfig } from '../../connector/config/destination'
import { runWrite } from '../../connector/runtime/write'
import { createTestIo } from '../support/command-io'
import { formatLines, mapping, singerFormat, visitRow } from '../support/destination-input'
import { sendJson, startServer } from '../support/listen'

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

/** What lives on the heap, in MB. */
const alive = (): number => {
  collect()
  return process.memoryUsage().heapUsed / 1e6
}

const chunk = 100

/** So many visits in pieces of 100, each with its state; `taken` is told how many were taken so far before each is given. */
async function* visits(count: number, taken: (before: number) => void): AsyncIterable<Uint8Array> {
  yield Buffer.from(formatLines(singerFormat.open('visit_records', 'id')))
  for (let from = 0; from < count; from += chunk) {
    taken(from)
    const rows = Array.from({ length: chunk }, (_, n) => singerFormat.record('visit_records', visitRow(from + n)))
    yield Buffer.from(formatLines([...rows, singerFormat.state('visit_records', from + chunk)]))
  }
}

const writing = (url: string, stdin: CommandIo['stdin'], more: object) => {
  const credentials = { auth_type: 'access_token', access_token: 'a-token' }
  const config = decodeDestinationConfig({ base_url: url, credentials, mapping, ...more })
  if (E.isLeft(config)) throw new Error(config.left.message)
  const out: string[] = []
  const io = createTestIo(stdin, async (text) => {
    out.push(String(text))
  })
  return { done: runWrite(io, config.right.config, decodeSinger(parseExactJson), () => undefined), out }
}

describe('memory', () => {
  it('holds nothing of visits that are through, however many', async () => {
    const marks = new Map<number, number>()
    const stdin = visits(60_000, (before) => {
      if (before === 20_000 || before === 59_900) marks.set(before, alive())
    })
    const { failures, countsByStream } = await writing('http://127.0.0.1:9', stdin, { dry_run: true }).done
    expect([failures, countsByStream.get('visit_records')?.accepted]).toEqual([[], 60_000])
    expect((marks.get(59_900) ?? Number.NaN) - (marks.get(20_000) ?? 0)).toBeLessThan(1)
  })

  it('is kept from filling by a slow service: no more is read than the batches under way and the next', async () => {
    const held: Array<() => void> = []
    let slow = true
    const service = await startServer(({ body }, response) => {
      const ids = (JSON.parse(body) as ReadonlyArray<{ readonly visitRecordId: string }>).map(
        (one) => one.visitRecordId,
      )
      const reply = () => sendJson(response, 200, { records: Object.fromEntries(ids.map((id) => [id, 'Success'])) })
      if (slow) held.push(reply)
      else reply()
    })
    let taken = 0
    const stdin = visits(5000, (before) => {
      taken = before
    })
    const { done, out } = writing(service.url, stdin, { rate_limit: { max_concurrency: 3 } })
    const turn = () => new Promise((resolve) => setImmediate(resolve))
    while (held.length < 3) await turn()
    for (let n = 0; n < 200; n += 1) await turn()
    expect([held.length, taken]).toEqual([3, 4 * chunk])
    expect(out).toEqual([])
    slow = false
    for (const reply of held) reply()
    expect((await done).countsByStream.get('visit_records')?.accepted).toBe(5000)
    expect(out).toHaveLength(50)
  })
})
