import * as E from 'fp-ts/Either'
import { describe, expect, it } from 'vitest'
import { destinationFormat } from '../../connector/cli/feedback-destination'

describe('the configuration of the destination', () => {
  const given = {
    base_url: 'https://feedback.example.com/tenant',
    credentials: { auth_type: 'access_token', access_token: 'S3CR3T' },
  }

  it('gets every default', () => {
    expect(destinationFormat.decode(given)).toMatchObject(
      E.right({
        unknownKeys: [],
        config: {
          mapping: { visit_records: {}, locations: {} },
          max_rejects_percent: 10,
          max_visit_age_days: 30,
          batch_size: 100,
          max_batch_age_seconds: 5,
          reconcile: {},
          max_deactivations_percent: 10,
          dry_run: false,
          rate_limit: { max_concurrency: 4 },
        },
      }),
    )
  })

  it('takes null for an attribute that is not to be sent, and an object for a stream', () => {
    const mapping = { visit_records: { phone: null, email: 'mail' } }
    expect(destinationFormat.decode({ ...given, mapping, streams: { users: 'visit_records' } })).toMatchObject(
      E.right({ unknownKeys: [], config: { mapping, streams: { users: 'visit_records' }, map_by_name: false } }),
    )
    for (const streams of [{ users: 'visits' }, ['users'], 'visit_records']) {
      const wrong = destinationFormat.decode({ ...given, streams })
      expect(E.isLeft(wrong) && wrong.left.message).toContain('The config is wrong: streams')
    }
  })

  it('names attributes that do not exist, and values that are wrong', () => {
    const unknown = destinationFormat.decode({ ...given, mapping: { visit_records: { mail: 'x' } } })
    expect(E.isRight(unknown) && unknown.right.unknownKeys).toEqual(['mapping.visit_records.mail'])
    const wrong = destinationFormat.decode({ ...given, mapping: { visit_records: { email: 5 } }, on_reject: 'stop' })
    expect(E.isLeft(wrong) && wrong.left.message).toMatch(/mapping\.visit_records\.email.*on_reject must be one of/)
  })
})
