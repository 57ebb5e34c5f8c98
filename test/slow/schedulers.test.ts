import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Sandbox, startSandbox } from '../../connector/sandbox/start'
import { createJsonFolder, type JsonFolder } from '../support/files'
import { makeSchedulingFiles, putFeedback, putStandIn, runIn, withoutAges } from '../support/scheduling'

const environments = process.env.SCHEDULER_VENV ?? ''
let sandbox: Sandbox
let files: JsonFolder
beforeAll(async () => {
  sandbox = await startSandbox({ reviews: 300 })
  files = createJsonFolder()
  makeSchedulingFiles(files.path, sandbox)
  for (const name of ['feedback_dagster.py', 'feedback_airflow.py']) {
    const path = join(files.path, name)
    writeFileSync(path, readFileSync(path, 'utf8').replace('/var/lib/feedback', files.path))
  }
})
afterAll(async () => {
  await sandbox.close()
  files.remove()
})

/** Runs a Python program in one of the environments; returns what it prints last, as JSON. */
const runPython = async (environment: string, program: string): Promise<unknown> => {
  const { status, stdout, stderr } = await runIn(
    files.path,
    join(environments, environment, 'bin/python'),
    ['-c', program],
    {
      env: { AIRFLOW_HOME: join(files.path, 'airflow'), AIRFLOW__CORE__LOAD_EXAMPLES: 'False', PYTHONPATH: files.path },
    },
  )
  expect([status, status === 0 ? '' : stderr.slice(-3000)]).toEqual([0, ''])
  return JSON.parse(stdout.trim().split('\n').at(-1) ?? '')
}

const listAlerts = async (): Promise<ReadonlyArray<unknown>> => {
  const args = ['query', '--db', 'reviews.duckdb', 'critical_alerts', '--format', 'json']
  return withoutAges(JSON.parse((await runIn(files.path, 'feedback', args)).stdout))
}

describe('Dagster', () => {
  const runJob = `
import json, sys
import dagster as dg
import feedback_dagster as module
# A step that is to be repeated is, without a pause.
wait = dg.RetryRequested
dg.RetryRequested = lambda max_retries, seconds_to_wait: wait(max_retries=max_retries)
job = module.defs.resolve_job_def("feedback")
with dg.DagsterInstance.ephemeral() as instance:
    result = job.execute_in_process(instance=instance, raise_on_error=False)
    steps = [event for event in result.all_events if event.step_key]
    made = result.get_asset_materialization_events()
    def without_age(alert):
        return {key: value for key, value in alert.items() if key != "age_days"}
    def describe(check):
        alerts = [without_age(alert) for alert in check.metadata["alerts"].data]
        return [check.check_name, check.passed, check.severity.value, alerts]
    print(json.dumps({
        "ok": result.success,
        "done": [event.step_key for event in steps if event.is_step_success],
        "failed": [event.step_key for event in steps if event.is_step_failure],
        "repeated": len([event for event in steps if event.is_step_up_for_retry]),
        "reviews": [
            event.materialization.metadata["reviews"].value
            for event in made if event.asset_key.to_user_string() == "reviews"
        ],
        "checks": [describe(check) for check in result.get_asset_check_evaluations()],
    }))
`

  it('runs the job: reads, reports, and warns of the alerts', async () => {
    putFeedback(files.path)
    const outcome = await runPython('dagster', runJob)
    const alerts = await listAlerts()
    expect(alerts.length).toBeGreaterThan(0)
    expect(outcome).toEqual({
      ok: true,
      done: expect.arrayContaining(['reviews', 'report', 'reviews_critical_alerts']),
      failed: [],
      repeated: 0,
      reviews: [300],
      checks: [['critical_alerts', false, 'WARN', alerts.slice(0, 100)]],
    })
  })

  it.each([
    [75, 4],
    [78, 0],
    [70, 0],
  ])('after status %i repeats the step %i times', async (status, repeated) => {
    putStandIn(files.path, [status])
    expect(await runPython('dagster', runJob)).toMatchObject({ ok: false, failed: ['reviews'], repeated })
  })

  it('starts the job each night', async () => {
    const program = `
import json
import feedback_dagster as module
[schedule] = module.defs.schedules
print(json.dumps([schedule.cron_schedule, schedule.execution_timezone, schedule.job_name]))`
    expect(await runPython('dagster', program)).toEqual(['15 2 * * *', 'UTC', 'feedback'])
  })
})

describe('Airflow', () => {
  const load = `
import json, warnings
warnings.simplefilter("error", DeprecationWarning)
import feedback_airflow as module
dag = module.feedback()
`

  it('imports the DAG', async () => {
    const program = `${load}
tasks = [[task.task_id, sorted(task.downstream_task_ids), task.retries] for task in dag.topological_sort()]
print(json.dumps([dag.dag_id, dag.max_active_runs, tasks]))`
    expect(await runPython('airflow', program)).toEqual([
      'feedback',
      1,
      [
        ['sync', ['check_status'], 4],
        ['check_status', ['write_report'], 4],
        ['write_report', ['find_alerts'], 4],
        ['find_alerts', ['mail_alerts'], 4],
        ['mail_alerts', [], 4],
      ],
    ])
  })

  it('runs its tasks', async () => {
    putFeedback(files.path)
    const program = `${load}
run = lambda name: dag.get_task(name).python_callable()
reviews = [each["records"] for each in run("sync") if each["stream"] == "reviews"]
run("check_status")
run("write_report")
alerts = [{key: value for key, value in alert.items() if key != "age_days"} for alert in run("find_alerts")]
print(json.dumps([len(reviews), alerts]))`
    expect(await runPython('airflow', program)).toEqual([1, await listAlerts()])
  })

  it.each([
    [75, 'RuntimeError'],
    [78, 'AirflowFailException'],
    [2, 'AirflowFailException'],
  ])('after status %i raises what makes Airflow repeat the task, or not: %s', async (status, name) => {
    putStandIn(files.path, [status])
    const program = `${load}
from airflow.sdk.exceptions import AirflowFailException
try:
    dag.get_task("sync").python_callable()
except AirflowFailException as error:
    print(json.dumps(["AirflowFailException", str(error)]))
except RuntimeError as error:
    print(json.dumps(["RuntimeError", str(error)]))`
    expect(await runPython('airflow', program)).toEqual([
      name,
      expect.stringContaining(`sync has ended with ${status}`),
    ])
  })

  it('mails each alert as it is, and no markup that it holds', async () => {
    const program = `${load}
from jinja2.sandbox import SandboxedEnvironment
class Instance:
    def xcom_pull(self, task_ids):
        return [{"owner": "<b>A & B</b>"}]
mail = dag.get_task("mail_alerts")
render = lambda text: dag.get_template_env().from_string(text).render(ti=Instance())
print(json.dumps([render(mail.subject), render(mail.html_content)]))`
    const [subject, html] = (await runPython('airflow', program)) as ReadonlyArray<string>
    expect(subject).toBe('1 alerts')
    expect(html).not.toMatch(/<b>|& B/)
  })
})

describe('Kubernetes', () => {
  it('takes each manifest, and no misspelt one', async () => {
    const validate = async (name: string) =>
      (await runIn(files.path, join(environments, 'kubernetes/bin/kubernetes-validate'), ['--strict', name])).status
    for (const name of ['feedback.yaml', 'backfill.yaml', 'join.yaml'])
      expect([name, await validate(name)]).toEqual([name, 0])
    const text = readFileSync(join(files.path, 'feedback.yaml'), 'utf8')
    writeFileSync(join(files.path, 'misspelt.yaml'), text.replace('onExitCodes', 'onExitCode'))
    expect(await validate('misspelt.yaml')).toBe(1)
  })
})

describe('cron', () => {
  it('takes the line, which means each night at a quarter past two', async () => {
    const program = `
import datetime, json, re
from croniter import croniter
line = open("feedback.cron").read().strip().split("\\n")[-1]
times, command = re.match(r"((?:\\S+ ){4}\\S+) (.*)", line).groups()
moment = croniter(times, datetime.datetime(2026, 11, 23, 12, 0)).get_next(datetime.datetime)
print(json.dumps([str(moment), command]))`
    expect(await runPython('kubernetes', program)).toEqual([
      '2026-11-24 02:15:00',
      'feedback-nightly /var/lib/feedback',
    ])
  })
})
