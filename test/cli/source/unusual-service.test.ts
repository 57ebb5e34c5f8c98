import { describe, it } from 'vitest'
import { sourceReadCommand } from '../../../connector/cli/feedback-source'
import { streams } from '../../../connector/streams/streams'
import { type Fields, warehouse } from '../../support/destination'
import { writeTempFile } from '../../support/files'
import { runCommand } from '../../support/run-command'
import { type ServiceTraits, startUnusualService } from '../../support/unusual-service'

const day = 86_400_000
const keys = Object.fromEntries(streams.map(({ name, primaryKey }) => [name, primaryKey]))
const ordinary: ServiceTraits = {
  clamp: 100,
  echoes: 'what it applied',
  identifiers: 50,
  stranger: false,
  shifts: false,
}
const awkward: Readonly<Record<string, Partial<ServiceTraits>>> = {
  'serves fewer rows than asked and says so': { clamp: 7 },
  'serves fewer rows than asked and does not say so': { clamp: 13, echoes: 'what was asked' },
  'serves fewer rows than asked and echoes nothing': { clamp: 13, echoes: 'nothing' },
  'gets comments while it is read, so that pages shift': { shifts: true, clamp: 30 },
  'refuses many identifiers': { identifiers: 2 },
  'answers with somebody nobody asked for': { stranger: true },
  'does all of this at once': { clamp: 11, identifiers: 3, stranger: true, shifts: true },
}

const people = ['1', '2', '3', '4', '5', '6', '7']

/** A past of a year: much said of some, a burst within a second of one, nothing of another. */
const withPast = async (habits: ServiceTraits, ended: (close: () => void) => void) => {
  const start = Date.now() - 60_000
  const service = await startUnusualService(habits, start, ended)
  const burst = Math.floor((start - 50 * day) / 1000) * 1000
  people.slice(1).forEach((id, n) => {
    for (let i = 0; i < (n === 2 ? 60 : 3 + n); i += 1)
      service.say(`person:${id}`, start - day * (1 + ((i * 37 + n) % 300)))
  })
  for (let i = 0; i < 33; i += 1) service.say('person:7', burst + i)
  for (const id of ['10', 'stranger']) service.say(`location:${id}`, start - 3 * day)
  service.say('person:stranger', start - 3 * day)
  service.say('entity:20', start - 9 * day)
  return service
}

describe.each(Object.entries(awkward))('a service that %s', (_, habits) => {
  it.concurrent.for(['comments', 'transparency_reviews'])(
    'is read without loss: %s',
    async (stream, { onTestFinished, expect }) => {
      const service = await withPast({ ...ordinary, ...habits }, onTestFinished)
      const config = writeTempFile({
        base_url: service.url,
        credentials: { auth_type: 'access_token', access_token: 'not-for-anybody' },
        start_date: new Date(service.now() - 365 * day).toISOString(),
        entities: { person_ids: people, location_ids: ['10'], entity_ids: ['20'] },
      })
      const catalog = writeTempFile({
        streams: [{ stream: { name: stream, json_schema: {} }, sync_mode: 'incremental' }],
      })
      const held = warehouse()
      const sync = async () => {
        const args = ['--config', config, '--catalog', catalog, '--state', writeTempFile(held.state())]
        const { status, stdout, stderr } = await runCommand(sourceReadCommand, args)
        expect(status, stderr + stdout.slice(-1000)).toBe(0)
        return held.load(stdout, keys)
      }
      const rows = () =>
        held
          .rows(stream)
          .map(({ entityType, entityId, id, documentId, response }) => {
            const text = response === null ? null : (response as Fields).responseText
            return `${entityType}:${entityId} ${id ?? documentId} ${text}`
          })
          .sort()

      await sync()
      service.calm()
      service.pass(60_000)
      await sync()
      expect(rows()).toEqual(service.truth())
      service.respond()
      service.pass(60_000)
      await sync()
      expect(rows()).toEqual(service.truth())
      service.pass(60_000)
      expect(await sync()).toEqual({})
      if (stream === 'comments' && habits.identifiers !== undefined) expect(service.refusals.length).toBeLessThan(16)
    },
  )
})
