import { describe, it } from 'vitest'
import { sourceReadCommand } from '../../../connector/cli/feedback-source'
import { streams } from '../../../connector/streams/streams'
import { type Fields, warehouse } from '../../support/destination'
import { writeTempFile } from '../../support/files'
import { runCommand } from '../../support/run-command'
import { type ServiceTraits, startUnusualService } from '../../support/unusual-service'

const day = 86_400_000
const keys = Object.fromEntries(streams.map(({ name, primaryKey }) => [name, primaryKey]))
const ordinaryTraits: ServiceTraits = {
  maxPageSize: 100,
  echo: 'the applied size',
  maxIdentifiers: 50,
  unrequestedEntity: false,
  changesWhileRead: false,
}
const unusualTraits: Readonly<Record<string, Partial<ServiceTraits>>> = {
  'serves fewer rows than requested and echoes how many': { maxPageSize: 7 },
  'serves fewer rows than requested and echoes the request': { maxPageSize: 13, echo: 'the requested size' },
  'serves fewer rows than requested and echoes nothing': { maxPageSize: 13, echo: 'nothing' },
  'gets comments while it is read, so that pages shift': { changesWhileRead: true, maxPageSize: 30 },
  'refuses many identifiers': { maxIdentifiers: 2 },
  'answers with an entity that was not requested': { unrequestedEntity: true },
  'does all of this at once': { maxPageSize: 11, maxIdentifiers: 3, unrequestedEntity: true, changesWhileRead: true },
}

const people = ['1', '2', '3', '4', '5', '6', '7']

/** A service with comments of a year: many on some persons, 33 in one second on one, none on another. */
const startServiceWithComments = async (traits: ServiceTraits, ended: (close: () => void) => void) => {
  const start = Date.now() - 60_000
  const service = await startUnusualService(traits, start, ended)
  const burst = Math.floor((start - 50 * day) / 1000) * 1000
  people.slice(1).forEach((id, n) => {
    for (let i = 0; i < (n === 2 ? 60 : 3 + n); i += 1)
      service.addComment(`person:${id}`, start - day * (1 + ((i * 37 + n) % 300)))
  })
  for (let i = 0; i < 33; i += 1) service.addComment('person:7', burst + i)
  for (const id of ['10', 'stranger']) service.addComment(`location:${id}`, start - 3 * day)
  service.addComment('person:stranger', start - 3 * day)
  service.addComment('entity:20', start - 9 * day)
  return service
}

describe.each(Object.entries(unusualTraits))('a service that %s', (_, traits) => {
  it.concurrent.for(['comments', 'transparency_reviews'])(
    'is read without loss: %s',
    async (stream, { onTestFinished, expect }) => {
      const service = await startServiceWithComments({ ...ordinaryTraits, ...traits }, onTestFinished)
      const config = writeTempFile({
        base_url: service.url,
        credentials: { auth_type: 'access_token', access_token: 'not-for-anybody' },
        start_date: new Date(service.now() - 365 * day).toISOString(),
        entities: { person_ids: people, location_ids: ['10'], entity_ids: ['20'] },
      })
      const catalog = writeTempFile({
        streams: [{ stream: { name: stream, json_schema: {} }, sync_mode: 'incremental' }],
      })
      const destination = warehouse()
      const sync = async () => {
        const args = ['--config', config, '--catalog', catalog, '--state', writeTempFile(destination.state())]
        const { status, stdout, stderr } = await runCommand(sourceReadCommand, args)
        expect(status, stderr + stdout.slice(-1000)).toBe(0)
        return destination.load(stdout, keys)
      }
      const rows = () =>
        destination
          .rows(stream)
          .map(({ entityType, entityId, id, documentId, response }) => {
            const text = response === null ? null : (response as Fields).responseText
            return `${entityType}:${entityId} ${id ?? documentId} ${text}`
          })
          .sort()

      await sync()
      service.stopChanges()
      service.advanceClock(60_000)
      await sync()
      expect(rows()).toEqual(service.truth())
      service.respond()
      service.advanceClock(60_000)
      await sync()
      expect(rows()).toEqual(service.truth())
      service.advanceClock(60_000)
      expect(await sync()).toEqual({})
      if (stream === 'comments' && traits.maxIdentifiers !== undefined) expect(service.refusals.length).toBeLessThan(16)
    },
  )
})
