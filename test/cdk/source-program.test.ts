import * as E from 'fp-ts/Either'
import * as O from 'fp-ts/Option'
import * as t from 'io-ts'
import { describe, expect, it } from 'vitest'
import type { Message } from '../../connector/cdk/message'
import { consumeMessages, identifyService, isSameService } from '../../connector/cdk/source-program'
import { defineStream } from '../../connector/cdk/stream'

const fingerprint = (url: string, account?: string) => identifyService(url, account).fingerprint

describe('the identity of a service', () => {
  it.each([
    ['https://a.example.com', 'https://a.example.com/'],
    ['https://a.example.com', 'HTTPS://A.Example.COM'],
    ['https://a.example.com', 'https://a.example.com:443'],
    ['http://a.example.com:80/x', 'http://a.example.com/x//'],
    ['https://a.example.com', 'https://a.example.com.'],
    ['https://a.example.com', 'https://user:secret@a.example.com/?token=secret#x'],
  ])('of %s is that of %s', (a, b) => {
    expect(fingerprint(a)).toBe(fingerprint(b))
    expect(JSON.stringify(identifyService(b, undefined))).not.toContain('secret')
  })

  it.each([
    ['https://a.example.com', 'https://b.example.com'],
    ['https://a.example.com', 'https://a.example.com:8443'],
    ['https://a.example.com/x', 'https://a.example.com/X'],
    ['http://a.example.com', 'https://a.example.com'],
  ])('of %s is not that of %s', (a, b) => {
    expect(isSameService(fingerprint(a), fingerprint(b))).toBe(false)
  })

  it('differs by account only where both are known', () => {
    const url = 'https://a.example.com'
    expect(isSameService(fingerprint(url, 'one'), fingerprint(url, 'one'))).toBe(true)
    expect(isSameService(fingerprint(url, 'one'), fingerprint(url, 'two'))).toBe(false)
    expect(isSameService(fingerprint(url, 'one'), fingerprint(url))).toBe(true)
    expect(fingerprint(url, 'one')).not.toContain('one')
  })
})

describe('consumeMessages', () => {
  const stream = (name: string) =>
    defineStream({
      name,
      codec: t.type({ id: t.number }),
      primaryKey: ['id'],
      cursor: 'id',
      reader: {
        name,
        read: () =>
          async function* (requests) {
            for (const { stream: requested, state } of requests)
              yield E.right({ _tag: 'Checkpoint', stream: requested, state: () => ({ given: O.toNullable(state) }) })
          },
      },
      project: () => [],
    })
  const streams = [stream('a'), stream('b'), stream('c')]
  const service = identifyService('https://one.example.com', undefined)

  it(
    'adds the service to each state, takes it off those it is ' +
      'given, and refuses those of another one, stream by stream',
    async () => {
      const messages: Message[] = []
      const outcome = await consumeMessages(
        { stop: new AbortController().signal, redactText: (text) => text },
        { streams, env: undefined, service },
        {
          catalog: streams.map(({ name }) => ({ name, syncMode: 'incremental', attributes: O.none })),
          state: {
            a: { at: 1, service: service.fingerprint },
            b: { at: 2, service: identifyService('https://two.example.com', undefined).fingerprint },
            c: { at: 3 },
          },
        },
        [async (message) => void messages.push(message)],
      )
      expect(outcome).toBe('failed')
      expect(messages.flatMap((message) => (message._tag === 'Checkpoint' ? [message.state] : []))).toEqual([
        { given: { at: 1 }, service: service.fingerprint },
        { given: { at: 3 }, service: service.fingerprint },
      ])
      expect(messages.filter(({ _tag }) => _tag === 'Failed')).toMatchObject([
        {
          stream: 'b',
          failure: {
            _tag: 'Config',
            message: expect.stringMatching(/state of b is of another service.*reset the stream/),
          },
        },
      ])
    },
  )
})
