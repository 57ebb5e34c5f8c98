import type { Reporter, TestCase, TestModule } from 'vitest/node'

const formatSeconds = (milliseconds = 0): string => `(${(milliseconds / 1000).toFixed(1)} s)`

/**
 * One line a scenario with its seconds, what went wrong under it, the seconds of each file, and at the end
 * `N passed, N failed`.
 */
export default class LineReporter implements Reporter {
  private passed = 0
  private failed = 0

  onTestCaseResult(test: TestCase): void {
    const { state, errors = [] } = test.result()
    if (state === 'skipped') return
    if (state === 'passed') this.passed += 1
    else this.failed += 1
    const time = formatSeconds(test.diagnostic()?.duration)
    process.stdout.write(`${state === 'passed' ? 'ok     ' : 'FAILED '} ${test.fullName} ${time}\n`)
    for (const { stack, message } of errors) process.stdout.write(`${stack ?? message}\n`)
  }

  onTestModuleEnd(module: TestModule): void {
    process.stdout.write(`        ${module.relativeModuleId} ${formatSeconds(module.diagnostic().duration)}\n`)
  }

  onTestRunEnd(modules: ReadonlyArray<TestModule>, errors: ReadonlyArray<{ readonly message: string }>): void {
    const broken = [...modules.flatMap((module) => module.errors()), ...errors]
    for (const { message } of broken) process.stdout.write(`FAILED  ${message}\n`)
    process.stdout.write(`${this.passed} passed, ${this.failed + broken.length} failed\n`)
  }
}
