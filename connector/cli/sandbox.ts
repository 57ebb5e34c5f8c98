import { readFile } from 'node:fs/promises'
import * as E from 'fp-ts/Either'
import { type CommandError, defineCommand, type ParsedOptions, usageError } from '../cdk'
import { decodeFaultPlan, type FaultRule, operationNames, startSandbox } from '../sandbox'
import { faultHelp, readSandboxFlags, sandboxFlagOptions } from './sandbox-flags'

const sandboxUsageError = (what: string): CommandError =>
  usageError(`feedback sandbox: ${what}. See feedback sandbox --help.`)

/** The rules of the file that `--faults` names. */
const loadFaultPlan = async ({ options }: ParsedOptions): Promise<ReadonlyArray<FaultRule>> => {
  const { faults } = options
  if (typeof faults !== 'string') return []
  const text = await readFile(faults, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw sandboxUsageError(`--faults: ${faults} cannot be read (${error.code})`)
  })
  const json = E.tryCatch(
    () => JSON.parse(text) as unknown,
    () => 'it is not JSON',
  )
  const rules = E.isLeft(json) ? json : decodeFaultPlan(json.right)
  if (E.isLeft(rules)) throw sandboxUsageError(`--faults: ${faults}: ${rules.left}`)
  return rules.right
}

const waitForStop = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })

export const sandboxCommand = defineCommand({
  name: 'sandbox',
  summary: 'Serves a Feedback Data Service of made-up reviews on this machine',
  options: {
    ...sandboxFlagOptions,
    faults: { type: 'string', value: 'FILE', help: 'a plan of faults, see below' },
  },
  notes: [
    'When it listens it prints one line of JSON: url, access_token, application_id, application_secret, token_url.',
    'It runs until it is stopped (Ctrl-C).',
    '',
    'All operations are there: reviews, comments by query and by form, visit records, location sync, both exports, the',
    'lookups and the token exchange. Locations that are synced are served; visits may bring a review when reviews arrive;',
    'a location whose code begins with NOSYNC cannot be synced.',
    '',
    'Beside the service:',
    '  GET  /openapi.json       its description; GET /docs: a page to try it in a browser',
    '  GET  /__sandbox/log      what was asked and answered',
    '  GET  /__sandbox/stats    how often',
    '  GET  /__sandbox/truth    what there is: ids and times',
    '  POST /__sandbox/churn    lets reviews change now, such as {"change": 3, "delete": 1, "add": 1}',
    '',
    'A plan of faults is a list of rules such as',
    '  [{"kind": "429", "operation": "exports", "requests": [3, 5], "retry_after": 2},',
    '   {"kind": "503", "share": 0.05}, {"kind": "clamp", "limit": 200, "from": 10, "to": 20}]',
    `Operations are called ${operationNames.join(', ')}; exports stands for both exports.`,
    "`requests` counts the requests of the rule's operations (default all) from 1; or `share` of those `from` … `to`, at most",
    '`times`. The first rule that strikes wins. The kinds, with `retry_after`, `retry_after_date`, `delay_ms`, `limit`:',
    ...faultHelp,
  ].join('\n'),
  examples: [
    'feedback sandbox --port 8080 --reviews 20000',
    'feedback sandbox --order ties --churn change=3,delete=1,add=1 --fail 2=429,4=cutjson',
    'feedback sandbox --grant guest=exportReviews --rate-limit 60 --latency 50-200',
  ],
  run: async (io, given) => {
    const options = readSandboxFlags(given.options)
    if (E.isLeft(options)) throw sandboxUsageError(options.left)
    const faults = [...(options.right.faults ?? []), ...(await loadFaultPlan(given))]
    const running = await startSandbox({ ...options.right, faults })
    await io.print(
      `${JSON.stringify({
        url: running.url,
        access_token: running.accessToken,
        application_id: running.applicationId,
        application_secret: running.applicationSecret,
        token_url: running.tokenUrl,
      })}\n`,
    )
    await waitForStop(io.stop)
    await running.close()
    return 0
  },
})
