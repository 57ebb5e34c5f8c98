import { readFile } from 'node:fs/promises'
import * as E from 'fp-ts/Either'
import { type CommandError, type CommandOptions, defineCommand } from '../cdk'
import { decodeFaultPlan, type FaultRule, isLocalHost, operationNames, startSandbox } from '../sandbox'
import { verbUsageError } from './options'
import { faultHelp, readSandboxFlags, sandboxFlagOptions } from './sandbox-flags'

const sandboxUsageError = (problem: string): CommandError => verbUsageError('feedback sandbox', `: ${problem}.`)

/** The fault rules in the file of `--faults`; none without a file. */
const loadFaultPlan = async (path: string | undefined): Promise<ReadonlyArray<FaultRule>> => {
  if (path === undefined) return []
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw sandboxUsageError(`--faults: ${path} cannot be read (${error.code})`)
  })
  const json = E.tryCatch(
    () => JSON.parse(text) as unknown,
    () => 'it is not JSON',
  )
  const rules = E.isLeft(json) ? json : decodeFaultPlan(json.right)
  if (E.isLeft(rules)) throw sandboxUsageError(`--faults: ${path}: ${rules.left}`)
  return rules.right
}

/** Resolves when the signal is aborted. */
const waitForStop = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })

export const sandboxCommand = defineCommand({
  name: 'sandbox',
  summary: 'Serves a Feedback Data Service with generated reviews on this machine.',
  options: {
    ...sandboxFlagOptions,
    faults: { type: 'string', value: 'FILE', help: 'A plan of faults, see below' },
  } satisfies CommandOptions,
  notes: [
    'When it listens, it prints one line of JSON: url, access_token, application_id, application_secret, token_url.',
    'It runs until it is stopped (Ctrl-C).',
    '',
    'It answers all operations: reviews, comments by query and by form, visit records, location sync, both exports,',
    'the lookups and the token exchange. New reviews belong to active locations, including synced ones, and some to',
    'recorded visits. A location whose code begins with NOSYNC cannot be synced.',
    '',
    'Other endpoints; those of __sandbox need the access_token in the header accessToken or as ?access_token=:',
    '  GET  /openapi.json       description of the service; GET /docs: a page to try it in a browser',
    '  GET  /__sandbox/log      the requests and their answers',
    '  GET  /__sandbox/stats    the numbers of requests, answers and faults',
    '  GET  /__sandbox/truth    ids and times of all its data',
    '  POST /__sandbox/churn    changes reviews now, such as {"change": 3, "delete": 1, "add": 1}',
    '  POST /__sandbox/clock    moves the clock of the service forward, such as {"seconds": 1800}',
    '',
    'Tokens are issued at /api/service/v1/token/create for a form with appId and appSecret, the default of the config.',
    '',
    'With --like published, tokens live for 30 minutes, and an expired one is reported inside a 200. Operation 1 is',
    'paged by scrollKey alone, and its window is days. fromDate and toDate have whole seconds, and minRatingCount is',
    '30 if a request sends none. The sources are an array at /api/reputation/v1/sources, there are no categories,',
    '/api/v2/entity/locations lists the active locations, and /api/service/v1/access/entities?type=Person or Location',
    'lists their names and codes.',
    '',
    'A plan of faults is a list of rules such as',
    '  [{"kind": "429", "operation": "exports", "requests": [3, 5], "retry_after": 2},',
    '   {"kind": "503", "share": 0.05}, {"kind": "clamp", "limit": 200, "from": 10, "to": 20}]',
    `The operations are ${operationNames.join(', ')}; exports stands for both exports.`,
    "The requests of a rule's operations (default all) are counted from 1. `requests` lists those that fail; or",
    '`share` is the share of the requests `from` … `to` that fails, at most `times`. The first rule that matches a',
    'request applies. The kinds, some with `retry_after`, `retry_after_date`, `delay_ms` or `limit`:',
    ...faultHelp,
  ].join('\n'),
  examples: [
    'feedback sandbox --port 8080 --reviews 20000',
    'feedback sandbox --order ties --churn change=3,delete=1,add=1 --fail 2=429,4=cutjson',
    'feedback sandbox --grant guest=exportReviews --rate-limit 60 --latency 50-200',
  ],
  run: async (io, parsed) => {
    const options = readSandboxFlags(parsed.options)
    if (E.isLeft(options)) throw sandboxUsageError(options.left)
    const faults = [...(options.right.faults ?? []), ...(await loadFaultPlan(parsed.options.faults))]
    const sandbox = await startSandbox({ ...options.right, faults })
    await io.print(
      `${JSON.stringify({
        url: sandbox.url,
        access_token: sandbox.accessToken,
        application_id: sandbox.applicationId,
        application_secret: sandbox.applicationSecret,
        token_url: sandbox.tokenUrl,
      })}\n`,
    )
    const { host = '127.0.0.1' } = options.right
    if (!isLocalHost(host))
      io.printWarning(
        `The sandbox listens on ${host || 'every address'}: other machines can reach it, without encryption. ` +
          'Anyone with the token can read and change all its data. Use no data of real people, or leave out --host.',
      )
    await waitForStop(io.stop)
    await sandbox.close()
    return 0
  },
})
