import { command, type Given, Stopped } from '../cdk/cli'
import { configFailure } from '../cdk/failure'
import { type Order, orders } from '../sandbox/export-orders'
import { faultKinds, readFaultPlan } from '../sandbox/faults'
import { type SandboxOptions, startSandbox } from '../sandbox/start'

const wrong = (option: string, right: string): Stopped =>
  new Stopped(configFailure(`feedback sandbox: --${option} is wrong. Give ${right}. See feedback sandbox --help.`))

const text = ({ options }: Given, name: string): string | undefined => {
  const value = options[name]
  return typeof value === 'string' ? value : undefined
}

const integer = (given: Given, name: string, least: number, most: number): number | undefined => {
  const value = text(given, name)
  if (value === undefined) return undefined
  const number = Number(value)
  if (!/^\d+$/.test(value) || number < least || number > most)
    throw wrong(name, `a whole number from ${least} to ${most}`)
  return number
}

const order = (given: Given): Order | undefined => {
  const value = text(given, 'order')
  const found = orders.find((name) => name === value)
  if (value !== undefined && found === undefined) throw wrong('order', `one of ${orders.join(', ')}`)
  return found
}

const churn = (given: Given): SandboxOptions['churn'] => {
  const value = text(given, 'churn')
  if (value === undefined) return undefined
  const step: Record<string, number> = {}
  for (const part of value.split(',')) {
    const [, name, count] = /^(change|delete|add)=(\d{1,6})$/.exec(part.trim()) ?? []
    if (name === undefined) throw wrong('churn', 'counts such as change=3,delete=1,add=1')
    step[name] = Number(count)
  }
  return step
}

const fail = (given: Given): SandboxOptions['fail'] => {
  const value = text(given, 'fail')
  const plan = value === undefined ? undefined : readFaultPlan(value)
  if (typeof plan === 'string') throw wrong('fail', `N=KIND,… (${plan})`)
  return plan
}

const until = (given: Given): number | undefined => {
  const value = text(given, 'until')
  const time = value === undefined ? undefined : Date.parse(value)
  if (Number.isNaN(time)) throw wrong('until', 'an ISO 8601 time such as 2026-01-01T00:00:00Z')
  return time
}

/** Only what is given, since an option that is not must keep its default. */
const given = <A extends object>(options: A): { [K in keyof A]?: Exclude<A[K], undefined> } =>
  Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as {
    [K in keyof A]?: Exclude<A[K], undefined>
  }

export const sandbox = command({
  name: 'sandbox',
  summary: 'Serves a Feedback Data Service of made-up reviews on this machine',
  options: {
    port: { type: 'string', value: 'N', help: 'port to listen on; 0, the default, takes any that is free' },
    host: { type: 'string', value: 'NAME', help: 'address to listen on, default 127.0.0.1' },
    reviews: { type: 'string', value: 'N', help: 'how many reviews there are, default 1000' },
    seed: { type: 'string', value: 'N', help: 'the same seed gives the same reviews, default 7' },
    until: { type: 'string', value: 'TIME', help: 'the newest time in the data, default a minute ago' },
    years: { type: 'string', value: 'N', help: 'over how many years the reviews are spread, default 3' },
    locations: { type: 'string', value: 'N', help: 'how many locations there are, default 40' },
    providers: { type: 'string', value: 'N', help: 'how many providers there are, default 200' },
    batch: { type: 'string', value: 'N', help: 'how many reviews a bulk change gives the same time, default 40' },
    order: { type: 'string', value: 'ORDER', help: `order of the exports: ${orders.join(', ')}` },
    churn: { type: 'string', value: 'COUNTS', help: 'what happens after every page, such as change=3,delete=1,add=1' },
    fail: { type: 'string', value: 'N=KIND,…', help: `the Nth export request fails once: ${faultKinds.join(', ')}` },
  },
  notes: [
    'When it listens it prints one line of JSON: url, access_token, application_id, application_secret, token_url.',
    'It runs until it is stopped (Ctrl-C). Order "ties" is a new random order among equal times at every request.',
  ].join('\n'),
  examples: [
    'feedback sandbox --port 8080 --reviews 20000',
    'feedback sandbox --order ties --churn change=3,delete=1,add=1 --fail 2=429,4=cutjson',
  ],
  run: async (io, asked) => {
    const running = await startSandbox(
      given({
        port: integer(asked, 'port', 0, 65_535),
        host: text(asked, 'host'),
        reviews: integer(asked, 'reviews', 0, 5_000_000),
        seed: integer(asked, 'seed', 0, 1_000_000),
        until: until(asked),
        years: integer(asked, 'years', 1, 50),
        locations: integer(asked, 'locations', 1, 10_000),
        providers: integer(asked, 'providers', 1, 100_000),
        batch: integer(asked, 'batch', 1, 1_000_000),
        order: order(asked),
        churn: churn(asked),
        fail: fail(asked),
      }),
    )
    await io.print(
      `${JSON.stringify({
        url: running.url,
        access_token: running.accessToken,
        application_id: running.applicationId,
        application_secret: running.applicationSecret,
        token_url: running.tokenUrl,
      })}\n`,
    )
    await new Promise<void>((resolve) => {
      if (io.stop.aborted) resolve()
      io.stop.addEventListener('abort', () => resolve(), { once: true })
    })
    await running.close()
    return 0
  },
})
