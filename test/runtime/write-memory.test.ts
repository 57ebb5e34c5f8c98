import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import * as E from 'fp-ts/Either'
import { describe, expect, it } from 'vitest'
import type { CommandIo } from '../../connector/cdk/program/command'
import { protocols } from '../../connector/cdk/protocols'
import { destinationFormat } from '../../connector/cli/feedback-destination'
import { runWrite } from '../../connector/runtime/write'
import { createTestIo } from '../support/command-io'
import { formatLines, mapping, singerFormat, visitRow } from '../support/destination-input'
import { sendJson, startServer } from '../support/listen'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

/** What is on the heap after a garbage collection, in MB. */
const measureHeap = (): number => {
  collectGarbage()
  return process.memoryUsage().heapUsed / 1e6
}

const chunkSize = 100

/**
 * So many visits in chunks of 100, each followed by a state; `onRead` gets the number of visits read before each chunk.
 */
async function* visits(count: number, onRead: (visitsRead: number) => void): AsyncIterable<Uint8Array> {
  yield Buffer.from(formatLines(singerFormat.open('visit_records', 'id')))
  for (let from = 0; from < count; from += chunkSize) {
    onRead(from)
    const rows = Array.from({ length: chunkSize }, (_, n) => singerFormat.record('visit_records', visitRow(from + n)))
    yield Buffer.from(formatLines([...rows, singerFormat.state('visit_records', from + chunkSize)]))
  }
}

const startWrite = (url: string, stdin: CommandIo['stdin'], more: object) => {
  const credentials = { auth_type: 'access_token', access_token: 'a-token' }
  const config = destinationFormat.decode({ base_url: url, credentials, mapping, ...more })
  if (E.isLeft(config)) throw new Error(config.left.message)
  const out: string[] = []
  const io = createTestIo(stdin, async (text) => {
    out.push(String(text))
  })
  return { done: runWrite(io, config.right.config, { protocol: protocols.singer, catalog: [] }), out }
}

describe('the memory of a write', () => {
  it('holds nothing of acknowledged visits, however many', async () => {
    const heapSizes = new Map<number, number>()
    const stdin = visits(60_000, (visitsRead) => {
      if (visitsRead === 20_000 || visitsRead === 59_900) heapSizes.set(visitsRead, measureHeap())
    })
    const { failures, countsByStream } = await startWrite('http://127.0.0.1:9', stdin, { dry_run: true }).done
    expect([failures, countsByStream.get('visit_records')?.accepted]).toEqual([[], 60_000])
    expect((heapSizes.get(59_900) ?? Number.NaN) - (heapSizes.get(20_000) ?? Number.NaN)).toBeLessThan(1)
  })

  it('does not grow with a slow service: a write reads only the batches in flight and the next ones', async () => {
    const heldReplies: Array<() => void> = []
    let isSlow = true
    const service = await startServer(({ body }, response) => {
      const ids = (JSON.parse(body) as ReadonlyArray<{ readonly visitRecordId: string }>).map(
        (one) => one.visitRecordId,
      )
      const reply = () => sendJson(response, 200, { records: Object.fromEntries(ids.map((id) => [id, 'Success'])) })
      if (isSlow) heldReplies.push(reply)
      else reply()
    })
    let visitsRead = 0
    const stdin = visits(5000, (count) => {
      visitsRead = count
    })
    const { done, out } = startWrite(service.url, stdin, { rate_limit: { max_concurrency: 3 } })
    const nextTurn = () => new Promise((resolve) => setImmediate(resolve))
    while (heldReplies.length < 3) await nextTurn()
    for (let n = 0; n < 200; n += 1) await nextTurn()
    expect([heldReplies.length, visitsRead]).toEqual([3, 4 * chunkSize])
    expect(out).toEqual([])
    isSlow = false
    for (const reply of heldReplies) reply()
    expect((await done).countsByStream.get('visit_records')?.accepted).toBe(5000)
    expect(out).toHaveLength(50)
  })
})
