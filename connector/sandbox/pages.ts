import * as E from 'fp-ts/Either'
import * as t from 'io-ts'
import type { LookupRoutes } from '../api/api'
import { type Churn, noChurn } from './churn'
import { docsPage } from './docs-page'
import type { RequestLog } from './log'
import { describeService } from './openapi'
import { readBody } from './read-body'
import { jsonReply, refusalReply } from './respond'
import type { SandboxPage } from './serve'
import type { SandboxService } from './service'

const ChurnCounts = t.exact(t.partial({ change: t.number, delete: t.number, add: t.number, restore: t.number }))
const isCount = (count: number | undefined): boolean =>
  count === undefined || (Number.isInteger(count) && count >= 0 && count <= 1_000_000)

const decodeChurn = (body: Buffer | undefined): Partial<Churn> | undefined => {
  const json = E.tryCatch(
    () => JSON.parse(body?.toString('utf8') ?? '') as unknown,
    () => undefined,
  )
  const step = E.isLeft(json) ? json : ChurnCounts.decode(json.right)
  return E.isRight(step) && Object.values(step.right).every(isCount) ? step.right : undefined
}

/** What is served beside the service: its description, and what no client may see: the log, the counts, the truth, a way to let time pass. */
export const createSandboxPages = (
  service: SandboxService,
  log: RequestLog,
  lookups: LookupRoutes,
): ReadonlyArray<SandboxPage> => [
  { method: 'GET', path: '/openapi.json', answer: async () => jsonReply(200, describeService(lookups)) },
  {
    method: 'GET',
    path: '/docs',
    answer: async () => ({
      status: 200,
      headers: { 'Content-Type': 'text/html;charset=UTF-8' },
      body: Buffer.from(docsPage),
    }),
  },
  { method: 'GET', path: '/__sandbox/log', answer: async () => jsonReply(200, log.entries()) },
  { method: 'GET', path: '/__sandbox/stats', answer: async () => jsonReply(200, log.stats()) },
  {
    method: 'GET',
    path: '/__sandbox/truth',
    answer: async () => jsonReply(200, await service.truthSummary()),
  },
  {
    method: 'POST',
    path: '/__sandbox/churn',
    answer: async (request) => {
      const step = decodeChurn(await readBody(request))
      if (step === undefined) return refusalReply(400, 'expected counts such as {"change": 3, "delete": 1, "add": 1}')
      await service.churn({ ...noChurn, ...step })
      return jsonReply(200, { done: step })
    },
  },
]
