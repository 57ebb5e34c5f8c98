import { spawnSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import Ajv from 'ajv'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { type Sandbox, startSandbox } from '../../connector/sandbox/start'
import { docsFolder } from '../support/doc-blocks'
import { createJsonFolder, type JsonFolder } from '../support/files'
import { makeSchedulingFiles, putFeedback, putProgram, putStandIn, runIn, withoutAges } from '../support/scheduling'

let sandbox: Sandbox
let files: JsonFolder
beforeAll(async () => {
  sandbox = await startSandbox({ reviews: 300 })
  files = createJsonFolder()
  makeSchedulingFiles(files.path, sandbox)
  putFeedback(files.path)
})
afterAll(async () => {
  await sandbox.close()
  files.remove()
})

const read = (name: string) => readFileSync(join(files.path, name), 'utf8')
const run = (script: string, env?: Readonly<Record<string, string>>) =>
  runIn(files.path, 'sh', ['-c', script], { env: { FEEDBACK_HOME: files.path, ...env } })
const findAlerts = async (): Promise<ReadonlyArray<unknown>> =>
  withoutAges(JSON.parse((await run('feedback query --db reviews.duckdb critical_alerts --format json')).stdout))
const reviewsOf = (csv: string): ReadonlyArray<string> =>
  csv
    .trim()
    .split('\n')
    .map((line) => line.split(',')[0] ?? '')

/** A new folder with the script and a stand-in that ends with these statuses; `sleep` takes no time. */
const runStandIn = async (statuses: ReadonlyArray<number>, script = './feedback-nightly .') => {
  const folder = join(files.path, 'stand-in')
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder)
  copyFileSync(join(files.path, 'feedback-nightly'), join(folder, 'feedback-nightly'))
  writeFileSync(join(folder, 'alerts.csv'), 'review_id\n')
  putStandIn(folder, statuses)
  putProgram(folder, 'sleep', `echo "$1" >> "${folder}/waits"`)
  const { status, stdout } = await runIn(folder, 'sh', ['-c', script])
  const lines = (name: string) =>
    existsSync(join(folder, name)) ? readFileSync(join(folder, name), 'utf8').trim().split('\n') : []
  return { status, stdout, verbs: lines('verbs'), waits: lines('waits') }
}

describe('the script that audits', () => {
  it.each([
    ['the table is equal', 'bucket,difference\n', { status: 0, stdout: '' }],
    [
      'the table differs',
      'bucket,difference\n17,missing\n',
      { status: 1, stdout: expect.stringContaining('missing: 1\nName what differs: --ids 17') },
    ],
    ['psql prints nothing', '', { status: 78, stdout: '' }],
  ])('ends as it should where %s', async (_, answer, outcome) => {
    expect(
      await run(
        'feedback sync --config config.json --db audit.duckdb > log ' +
          '&& feedback state export --db audit.duckdb --out state.json',
      ),
    ).toMatchObject({ status: 0 })
    // It answers only if it is given a statement.
    putProgram(files.path, 'psql', `grep -q '^SELECT' audit.sql && printf '%s' '${answer}'`)
    expect(await runIn(files.path, './feedback-audit', ['.', 'public.reviews'])).toMatchObject(outcome)
  })
})

describe('the script for cron', () => {
  it('reads, checks and reports, and prints each alert once', async () => {
    const cron = read('feedback.cron').trim().split('\n')
    const line = cron.at(-1) ?? ''
    const command = /^15 2 \* \* \* ([^%]+)$/.exec(line)?.[1] ?? ''
    const nightly = `PATH="$FEEDBACK_HOME:$PATH"; ${command.replace('/var/lib/feedback', '.')}`
    const { status, stdout, stderr } = await run(nightly)
    expect([status, stderr]).toEqual([0, ''])
    expect(JSON.parse(read('sync.json'))).toContainEqual(
      expect.objectContaining({ stream: 'reviews', status: 'complete', records: 300 }),
    )
    const query = 'SELECT review_id FROM critical_alerts ORDER BY review_id'
    const alerts = (await run(`feedback query --db reviews.duckdb --format csv "${query}"`)).stdout.trim().split('\n')
    expect(alerts.length).toBeGreaterThan(2)
    expect(reviewsOf(stdout)).toEqual(alerts)
    expect(reviewsOf(read('alerts.csv'))).toEqual(reviewsOf(stdout))
    expect(await run(nightly)).toEqual({ status: 0, stdout: '', stderr: '' })
    const [known = '', ...others] = read('known-alerts.csv').trim().split('\n').slice(1)
    writeFileSync(join(files.path, 'known-alerts.csv'), `${others.join('\n')}\n`)
    expect((await run(nightly)).stdout).toBe(`${stdout.split('\n')[0]}\n${known}\n`)
    expect(read('report.html')).toMatch(/^<!doctype html>/i)
  })

  it('prints nothing where there are no alerts', async () => {
    const none = await startSandbox({ reviews: 0 })
    const folder = join(files.path, 'none')
    mkdirSync(folder)
    makeSchedulingFiles(folder, none)
    putFeedback(folder)
    expect(await runIn(folder, './feedback-nightly', ['.'])).toMatchObject({ status: 0, stdout: '' })
    expect(reviewsOf(readFileSync(join(folder, 'alerts.csv'), 'utf8'))).toEqual(['review_id'])
    await none.close()
  })

  it('prints the log of a run whose config is wrong', async () => {
    const folder = join(files.path, 'wrong')
    mkdirSync(folder)
    makeSchedulingFiles(folder, sandbox)
    putFeedback(folder)
    writeFileSync(join(folder, 'config.json'), '{}')
    const { status, stdout } = await runIn(folder, './feedback-nightly', ['.'])
    expect([status, stdout]).toEqual([78, expect.stringContaining('The config is wrong')])
    expect(await runIn(folder, './feedback-nightly', ['no such folder'])).toMatchObject({ status: 78 })
  })

  it.each([
    ['75 four times', [75], 75, ['sync', 'sync', 'sync', 'sync'], ['300', '600', '900']],
    ['75 once', [75, 0, 0, 0, 0], 0, ['sync', 'sync', 'status', 'report', 'query'], ['300']],
    ['78', [78], 78, ['sync'], []],
    ['70', [70], 70, ['sync'], []],
    ['2', [2], 2, ['sync'], []],
    ['a status that says no', [0, 1], 1, ['sync', 'status'], []],
    ['a report that fails', [0, 0, 78], 78, ['sync', 'status', 'report'], []],
    ['a query that fails', [0, 0, 0, 75], 75, ['sync', 'status', 'report', 'query'], []],
  ])('repeats what may pass by itself and nothing else: %s', async (_, statuses, status, verbs, waits) => {
    expect(await runStandIn(statuses)).toMatchObject({ status, verbs, waits })
  })
})

/** The settings of a unit file: for each section, each setting with its values. */
const parseUnit = (text: string): Readonly<Record<string, ReadonlyArray<string>>> => {
  const found: Record<string, string[]> = {}
  let section = ''
  for (const line of text.split('\n')) {
    section = /^\[(\w+)\]$/.exec(line)?.[1] ?? section
    const [, name, value = ''] = /^(\w+)=(.*)$/.exec(line) ?? []
    if (name !== undefined) found[`${section}.${name}`] = [...(found[`${section}.${name}`] ?? []), value]
  }
  return found
}

const unitNames = ['feedback.service', 'feedback-failed.service', 'feedback.timer']
const hasSystemd = spawnSync('systemd-analyze', ['--version']).status === 0

describe('the systemd units', () => {
  it.skipIf(!hasSystemd)('are what systemd-analyze verify takes without a word', () => {
    const folder = join(files.path, 'units')
    mkdirSync(folder)
    // Programs that this machine may lack.
    const withPrograms = (text: string) =>
      text.replaceAll('/usr/local/bin/feedback', '/bin/true').replaceAll('/usr/bin/systemd-cat', '/bin/true')
    const verify = (edit: (text: string) => string) => {
      for (const name of unitNames) writeFileSync(join(folder, name), edit(withPrograms(read(name))))
      const { status, stdout, stderr } = spawnSync(
        'systemd-analyze',
        ['verify', ...unitNames.map((name) => `./${name}`)],
        {
          cwd: folder,
          encoding: 'utf8',
        },
      )
      return [status, `${stdout}${stderr}`]
    }
    expect(verify((text) => text)).toEqual([0, ''])
    expect(verify((text) => text.replace('RestartSec', 'RestartSeconds'))).toEqual([
      0,
      expect.stringContaining('Unknown key'),
    ])
  })

  it('runs the commands in order, and repeats 75 alone', async () => {
    const unit = parseUnit(read('feedback.service'))
    expect(unit['Service.Restart']).toEqual(['on-failure'])
    expect(unit['Service.RestartPreventExitStatus']).toEqual(['1 2 70 78'])
    expect(parseUnit(read('feedback.timer'))['Timer.OnCalendar']).toEqual(['*-*-* 02:15:00'])
    const commands = (unit['Service.ExecStart'] ?? []).map((line) =>
      line
        .replace('/usr/bin/systemd-cat -t feedback-alerts -p warning ', '')
        .replace('/usr/local/bin/feedback', 'feedback'),
    )
    expect(commands.map((command) => command.split(' ')[1])).toEqual(['sync', 'status', 'report', 'query'])
    const { status, stdout } = await run(commands.at(-1) ?? '')
    expect(status).toBe(0)
    const lines = stdout.split('\n').filter((line) => line.startsWith('{'))
    expect(withoutAges(lines.map((line) => JSON.parse(line)))).toEqual(await findAlerts())
  })
})

type Container = {
  readonly name: string
  readonly command: ReadonlyArray<string>
  readonly args: ReadonlyArray<string>
}

describe('the CronJob', () => {
  it('runs each container in turn, and ends at once where a repetition changes nothing', async () => {
    const [, cronJob] = parseAllDocuments(read('feedback.yaml')).map((document) => document.toJS())
    const job = cronJob.spec.jobTemplate.spec
    expect(job.podFailurePolicy.rules[0]).toEqual({
      action: 'FailJob',
      onExitCodes: { operator: 'In', values: [1, 2, 70, 78] },
    })
    const { initContainers, containers } = job.template.spec
    const all: ReadonlyArray<Container> = [...initContainers, ...containers]
    expect(all.map(({ args }) => args[0])).toEqual(['sync', 'status', 'report', 'query'])
    const env = {
      FEEDBACK_BASE_URL: sandbox.url,
      FEEDBACK_CREDENTIALS_AUTH_TYPE: 'access_token',
      FEEDBACK_CREDENTIALS_ACCESS_TOKEN: sandbox.accessToken,
      FEEDBACK_START_DATE: '2000-01-01T00:00:00Z',
    }
    let last = ''
    for (const { name, command, args } of all.filter((each) => ['sync', 'alerts'].includes(each.name))) {
      const words = [...command, ...args].map((word) => word.replace('/data/', `${files.path}/`))
      const { status, stdout } = await run(words.map((word) => `'${word}'`).join(' '), name === 'sync' ? env : {})
      expect([name, status]).toEqual([name, 0])
      last = stdout
    }
    const lines = last.trim().split('\n')
    expect(withoutAges(lines.map((line) => JSON.parse(line)))).toEqual(await findAlerts())
  })
})

/** The parts of Kestra's format that the flow uses; no package registry has Kestra itself. */
const taskSchema = (type: string, properties: object, required: ReadonlyArray<string> = []) => ({
  type: 'object',
  properties: {
    id: { type: 'string', pattern: '^[a-zA-Z0-9][a-zA-Z0-9_-]*$' },
    type: { const: type },
    runIf: { type: 'string' },
    retry: {
      type: 'object',
      properties: {
        type: { enum: ['constant', 'exponential', 'random'] },
        interval: { type: 'string', pattern: '^PT?(\\d+[DHMS])+$' },
        maxAttempts: { type: 'integer', minimum: 1 },
      },
      required: ['type', 'interval'],
      additionalProperties: false,
    },
    ...properties,
  },
  required: ['id', 'type', ...required],
  additionalProperties: false,
})
const text = { type: 'string' }
const tasksSchema = {
  type: 'array',
  minItems: 1,
  items: {
    oneOf: [
      taskSchema(
        'io.kestra.plugin.scripts.shell.Commands',
        {
          commands: { type: 'array', minItems: 1, items: text },
          taskRunner: { type: 'object', properties: { type: text }, required: ['type'], additionalProperties: false },
        },
        ['commands'],
      ),
      taskSchema('io.kestra.plugin.core.execution.Fail', { condition: text, errorMessage: text }),
      taskSchema(
        'io.kestra.plugin.core.http.Request',
        { uri: text, method: { enum: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] }, contentType: text, body: text },
        ['uri'],
      ),
    ],
  },
}
const flowSchema = {
  type: 'object',
  properties: {
    id: text,
    namespace: text,
    concurrency: {
      type: 'object',
      properties: { limit: { type: 'integer', minimum: 1 }, behavior: { enum: ['QUEUE', 'CANCEL', 'FAIL'] } },
      required: ['limit'],
      additionalProperties: false,
    },
    tasks: tasksSchema,
    errors: tasksSchema,
    triggers: {
      type: 'array',
      items: {
        type: 'object',
        properties: { id: text, type: { const: 'io.kestra.plugin.core.trigger.Schedule' }, cron: text, timezone: text },
        required: ['id', 'type', 'cron'],
        additionalProperties: false,
      },
    },
  },
  required: ['id', 'namespace', 'tasks'],
  additionalProperties: false,
}

describe("Kestra's flow", () => {
  const readFlow = (): {
    readonly tasks: ReadonlyArray<{ readonly id: string; readonly commands?: ReadonlyArray<string> }>
  } => parse(read('feedback_kestra.yaml'))
  const scriptOf = (id: string) =>
    ['set -e', ...(readFlow().tasks.find((task) => task.id === id)?.commands ?? ['exit 99'])].join('\n')
  const outputsOf = (stdout: string) => JSON.parse(/^::(\{.*\})::$/m.exec(stdout)?.[1] ?? '{}').outputs

  it('has the form that the documentation of Kestra describes', () => {
    const validate = new Ajv().compile(flowSchema)
    expect([validate(readFlow()), validate.errors]).toEqual([true, null])
    expect(validate({ ...readFlow(), task: [] })).toBe(false)
  })

  it('runs its commands, and hands on statuses and alerts', async () => {
    const inFolder = (script: string) => script.replace('/var/lib/feedback', '.')
    const report = await run(inFolder(scriptOf('report')))
    expect([report.status, withoutAges(outputsOf(report.stdout).alerts)]).toEqual([0, await findAlerts()])
    for (const [given, status, outputs] of [
      [0, 0, { status: 0 }],
      [75, 75, undefined],
      [78, 0, { status: 78 }],
      [70, 0, { status: 70 }],
    ] as const) {
      const outcome = await runStandIn([given], inFolder(scriptOf('sync')))
      expect([given, outcome.status, outputsOf(outcome.stdout)]).toEqual([given, status, outputs])
    }
    expect(await runStandIn([1], inFolder(scriptOf('report')))).toMatchObject({ status: 1, verbs: ['status'] })
  })
})

describe('docs/running.md', () => {
  it('names every file of examples/running', () => {
    const page = readFileSync(join(docsFolder, 'running.md'), 'utf8')
    for (const name of readdirSync(join(docsFolder, '..', 'examples', 'running'))) expect(page).toContain(name)
  })

  it('means the exit statuses of running.md', () => {
    const page = readFileSync(join(docsFolder, 'running.md'), 'utf8')
    for (const status of [1, 2, 70, 75, 78]) expect(page).toContain(`\n| ${status} |`)
  })
})
