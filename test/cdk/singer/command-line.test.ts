import { expect, it } from 'vitest'
import { formatJsonLog, formatPlainLog } from '../../../connector/cdk/singer/command-line'
import { metricLogEntry } from '../../../connector/cdk/singer/encode'

it('logs a line in the plain form of Singer', () => {
  expect(formatPlainLog({ level: 'warn', message: 'two\nlines' })).toBe('WARNING two\\nlines')
})

it('logs all eight keys of the SDK’s structured form', () => {
  const entry = JSON.parse(formatJsonLog('tap', 7, () => 1500)({ level: 'error', message: 'm\nn', stream: 's' }))
  expect(entry).toEqual({
    level: 'error',
    pid: 7,
    logger_name: 'tap',
    ts: 1.5,
    thread_name: 'main',
    app_name: 'tap',
    stream_name: 's',
    message: 'm\nn',
  })
  expect(JSON.parse(formatJsonLog('tap', 7, () => 0)({ level: 'info', message: '' })).stream_name).toBeNull()
})

it('names the stream of a measurement', () => {
  expect(metricLogEntry('timer', 'sync_duration', 1, { stream: 's' })).toEqual({
    level: 'info',
    message: 'METRIC: {"type":"timer","metric":"sync_duration","value":1,"tags":{"stream":"s"}}',
    stream: 's',
  })
})
