import { describe, expect, it } from 'vitest'
import { cutter } from '../../connector/api/cut'
import { attributePaths } from '../../connector/api/cut/compile'
import { DeletedReview, Review } from '../../connector/api/model/review'
import { cutReviews as cut, isAsItCame, leaves, leftOf, pageOf, reviewOf, reviewOptions, rightOf } from './cut/page-of'

const bytes = (text: string): Uint8Array => Buffer.from(text)

describe('cutter', () => {
  it('gives each record its slice, its digits and its time', () => {
    const first = reviewOf('"rating":4.5')
    const second = '{ "modifiedTime" : "2024-05-01T12:11:12+02:00", "id":9007199254740993 }'
    const { rows } = rightOf(cut(pageOf(first, second)))
    expect(rows.map(({ id, modifiedTime }) => [id, modifiedTime])).toEqual([
      ['1', Date.parse('2024-05-01T10:11:12.345Z')],
      ['9007199254740993', Date.parse('2024-05-01T10:11:12Z')],
    ])
    expect(Buffer.from(rows[0]?.raw ?? []).toString()).toBe(first)
    expect(isAsItCame(rows[0])).toBe(true)
    expect(Buffer.from(rows[1]?.raw ?? []).toString()).toBe(second)
    expect(Buffer.from(rows[1]?.json ?? []).toString()).toBe(
      '{ "modifiedTime" : "2024-05-01T10:11:12.000Z", "id":9007199254740993 }',
    )
  })

  it('keeps integers of 64 bits wherever they stand', () => {
    const long = reviewOf(
      '"contents":[{"id":9007199254740993,"sentiments":[{"id":9007199254740995,"reviewId":-9223372036854775808}],' +
        '"liabilities":[{"liabilityId":9223372036854775807}]}],"textAnalytics":{"run":18446744073709551617}',
    )
    expect(leaves(cut, long)).toBe(long)
    expect(
      leaves(cut, long.replace('}]}],"text', '}]}],"contents":null,"contents":[{"id":9007199254740993}],"text')),
    ).toContain('"contents":[{"id":9007199254740993}]')
  })

  it('finds the end of a string of any length, and what may not stand in it', () => {
    for (let length = 0; length < 24; length++)
      for (let at = 0; at <= length; at++) {
        const text = (middle: string): string => `${'x'.repeat(at)}${middle}${'y'.repeat(length - at)}`
        const whole = (middle: string): string => reviewOf(`"surveyBarCode":"${text(middle)}","rating":1`)
        for (const middle of ['', '\\"', '\\\\', '\\u00e9', ' !#[]~\u007f', 'é😀'])
          expect(leaves(cut, whole(middle))).toBe(whole(middle))
        for (const middle of ['\t', '\u0001', '\\x', '"'])
          expect(leftOf(cut(pageOf(whole(middle))))).toMatchObject({ _tag: 'Decode' })
      }
  })

  it('nulls what is of the wrong type and says where', () => {
    const [row] = rightOf(
      cut(
        pageOf(
          reviewOf(
            '"rating":"five","contents":[{"id":1},{"id":"x","sentiments":[{"id":1},7],"noOfSentiments":9223372036854775808}],' +
              '"mentionTime":"2024-02-30T00:00:00Z","brand":{}',
          ),
        ),
      ),
    ).rows
    expect(Buffer.from(row?.json ?? []).toString()).toBe(
      reviewOf(
        '"rating":null,"contents":[{"id":1},{"id":null,"sentiments":null,"noOfSentiments":null}],"mentionTime":null,"brand":null',
      ),
    )
    expect(row?.changes?.map(({ field }) => field)).toEqual([
      'rating',
      'contents.1.id',
      'contents.1.sentiments',
      'contents.1.noOfSentiments',
      'mentionTime',
      'brand',
    ])
    expect(new Set(row?.changes?.map(({ change, reason }) => `${change} ${reason}`))).toEqual(
      new Set(['NULLED SOURCE_SERIALIZATION_ERROR']),
    )
  })

  it('nulls a number that no double holds, and writes whole numbers in digits', () => {
    expect(leaves(cut, reviewOf('"rating":1e400,"taskDetails":{"id":1e3},"source":{"id":1e18}'))).toBe(
      reviewOf('"rating":null,"taskDetails":{"id":1000},"source":{"id":null}'),
    )
  })

  it('leaves null where it may stand', () => {
    const [row] = rightOf(cut(pageOf(reviewOf('"rating":null,"contents":null,"location":{"id":null}')))).rows
    expect(isAsItCame(row)).toBe(true)
    expect(row).not.toHaveProperty('changes')
  })

  it('takes engagement for engagements, and never sends a key twice', () => {
    expect(leaves(cut, reviewOf('"engagement":[{"engagement":"Hi"}]'))).toBe(
      reviewOf('"engagements":[{"engagement":"Hi"}]'),
    )
    expect(leaves(cut, reviewOf('"engagement":[{"engagement":"old"}],"engagements":[]'))).toBe(
      reviewOf('"engagements":[]'),
    )
    expect(leaves(cut, reviewOf('"\\u0065ngagement" :[]'))).toBe(reviewOf('"engagements" :[]'))
    expect(leaves(cut, reviewOf('"engagements":null,"engagement":[{"engagement":"Hi"}]'))).toBe(
      reviewOf('"engagements":[{"engagement":"Hi"}]'),
    )
    expect(
      leaves(cut, reviewOf('"rating":1,"rating":2,"source":{"id":1,"id":2},"textAnalytics":{"a":{"b":1,"b":2}}')),
    ).toBe(reviewOf('"rating":2,"source":{"id":2},"textAnalytics":{"a":{"b":2}}'))
  })

  it('puts half a surrogate pair right, since no UTF-8 can say it', () => {
    expect(leaves(cut, reviewOf('"visitRecordId":"a\\ud83d","textAnalytics":{"\\ude00":"\\ud83d\\ude00"}'))).toBe(
      reviewOf('"visitRecordId":"a\\ufffd","textAnalytics":{"\\ufffd":"\\ud83d\\ude00"}'),
    )
  })

  it('sends each record on one line', () => {
    const pretty = JSON.stringify({ reviews: [JSON.parse(reviewOf('"source":{"id":1,"name":"a\\nb"}'))] }, null, 2)
    const [row] = rightOf(cut(bytes(pretty.replaceAll('\n', '\r\n')))).rows
    const text = Buffer.from(row?.json ?? []).toString()
    expect(text).not.toMatch(/[\r\n]/)
    expect(JSON.parse(text)).toEqual(JSON.parse(reviewOf('"source":{"id":1,"name":"a\\nb"}')))
  })
})

describe('undeclared attributes', () => {
  const page = pageOf(
    reviewOf('"mood":{"x":[1]},"rating":1,"unknown_attributes":{"y":1},"contents":[{"tone":1},{"tone":2}]'),
    reviewOf('"mood":1'),
  )

  it('are collected, and reported once a page', () => {
    const { rows, unknown } = rightOf(cut(page))
    expect(Buffer.from(rows[0]?.json ?? []).toString()).toBe(
      reviewOf(
        '"rating":1,"contents":[{"tone":1},{"tone":2}],"unknown_attributes":{"mood":{"x":[1]},"unknown_attributes":{"y":1}}',
      ),
    )
    expect(unknown).toEqual(['reviews.mood', 'reviews.unknown_attributes', 'reviews.contents.tone'])
  })

  it('are dropped', () => {
    const { rows } = rightOf(cutter({ ...reviewOptions, undeclared: 'drop' })(page))
    expect(Buffer.from(rows[0]?.json ?? []).toString()).toBe(reviewOf('"rating":1,"contents":[{"tone":1},{"tone":2}]'))
  })

  it('fail by name', () => {
    expect(leftOf(cutter({ ...reviewOptions, undeclared: 'fail' })(page))).toMatchObject({
      _tag: 'Decode',
      path: 'reviews.mood',
      remedy: expect.stringContaining('on_unknown_attribute'),
    })
  })

  it('may be of many names, repeat them and spell them as they like', () => {
    for (let start = 0; start < 2000; start += 100) {
      const names = Array.from({ length: 100 }, (_, i) => `n${start + i}`)
      const members = names.map((name) => `"${name}":1`).join(',')
      const collected = JSON.parse(leaves(cut, reviewOf(`${members},"n${start}":2,"\\u006e${start + 1}":2`)))
      expect(collected.unknown_attributes).toEqual({
        ...Object.fromEntries(names.map((name) => [name, 1])),
        [`n${start}`]: 2,
        [`n${start + 1}`]: 2,
      })
    }
  })

  it('may have names of any length, and such as differ in one letter only', () => {
    const names = Array.from({ length: 12 }, (_, length) => 'abcdefghijkl'.slice(0, length))
    const others = names.flatMap((name) =>
      [...name].map((_, at) => `${name.slice(0, at)}-${name.slice(at + 1)}`).filter((other) => other !== ''),
    )
    const members = (all: ReadonlyArray<string>): string => all.map((name, i) => `"${name}":${i}`).join(',')
    for (const all of [names, names, [...others, ...names], [...names].reverse(), names])
      expect(JSON.parse(leaves(cut, reviewOf(members(all)))).unknown_attributes).toEqual(
        Object.fromEntries(all.map((name, i) => [name, i])),
      )
  })

  it('that come first leave no comma behind', () => {
    const drop = cutter({ ...reviewOptions, undeclared: 'drop' })
    expect(leaves(drop, '{ "a":1 , "b":2 ,"id":1,"c":3,"modifiedTime":"2024-05-01T10:11:12.345Z", "d":4 }')).toBe(
      '{"id":1,"modifiedTime":"2024-05-01T10:11:12.345Z" }',
    )
  })
})

describe('privacy', () => {
  const cut = cutter({
    ...reviewOptions,
    actions: {
      'contents.response': (text) => `#${text.length}`,
      'contents.sentiments': 'drop',
      'engagement.engagement': 'drop',
      'taskDetails.id': (text) => `#${text}`,
      visitRecordId: 'drop',
    },
  })

  it('drops and hashes by path, arrays walked, other names and repeated keys included', () => {
    expect(
      leaves(
        cut,
        reviewOf(
          '"visitRecordId":"secret","contents":[{"sentiments":[{"feature":"secret"}],"id":1},{"r\\u0065sponse":"gr\\u00fcn","sentiments":3}],' +
            '"engagement":[{"engagement":"secret","engagementTime":null}],"taskDetails":{"id":9007199254740993}',
        ),
      ),
    ).toBe(
      reviewOf(
        '"contents":[{"id":1},{"r\\u0065sponse":"#4"}],"engagements":[{"engagementTime":null}],"taskDetails":{"id":"#9007199254740993"}',
      ),
    )
    const twice = leaves(
      cut,
      reviewOf(
        '"visitRecordId":"secret","visitRecordId":"secret","contents":[{"response":"secret","response":"secret"}]',
      ),
    )
    expect(twice).toBe(reviewOf('"contents":[{"response":"#6"}]'))
  })

  it('never touches what identifies a record', () => {
    for (const name of ['id', 'modifiedTime'])
      expect(() => cutter({ ...reviewOptions, actions: { [name]: 'drop' } })).toThrow(name)
  })

  it('has no word about null and what was nulled', () => {
    expect(leaves(cut, reviewOf('"contents":[{"response":null},{"response":["secret"]}]'))).toBe(
      reviewOf('"contents":[{"response":null},{"response":null}]'),
    )
  })
})

it('names the paths that privacy may name', () => {
  const paths = attributePaths(Review)
  expect(paths).toEqual(
    expect.arrayContaining(['id', 'contents', 'contents.sentiments.reviewId', 'engagements.engagement']),
  )
  expect(new Set(paths).size).toBe(paths.length)
})

describe('an answer', () => {
  const outcome = (text: string) => leftOf(cut(bytes(text)))

  it('without records is empty if it echoes, an error if it carries a status', () => {
    expect(rightOf(cut(bytes('{"filter":{"offset":7},"took":3}')))).toEqual({
      rows: [],
      filter: { offset: 7 },
      unknown: [],
      listed: false,
      release: expect.any(Function),
    })
    expect(rightOf(cut(bytes('{"reviews":null,"filter":{}}'))).listed).toBe(false)
    expect(rightOf(cut(bytes('{"reviews":[]}'))).listed).toBe(true)
    expect(outcome('{"status":{"code":7,"message":"no"},"filter":{}}')).toEqual({
      _tag: 'Application',
      code: '7',
      message: 'no',
    })
    expect(outcome('{"status":{"code":"E1","message":"no"},"reviews":[]}')).toMatchObject({ _tag: 'Application' })
    expect(rightOf(cut(bytes('{"status":{"code":0,"message":"SUCCESS"},"reviews":[]}'))).rows).toEqual([])
    expect(outcome('{}')).toMatchObject({ _tag: 'Decode', path: '$' })
  })

  it.each([
    ['[]', '$'],
    ['', '$'],
    ['<html>', '$'],
    ['{"reviews":{}}', '$.reviews'],
    ['{"reviews":[],"reviews":[]}', '$.reviews'],
    ['{"reviews":[],"filter":[]}', '$.filter'],
    ['{"reviews":[],"filter":{"offset":"1"}}', '$.filter.offset'],
    [`{"reviews":[${reviewOf()},null]}`, '$.reviews[1]'],
    ['{"reviews":[{"modifiedTime":"2024-05-01T10:11:12.345Z"}]}', '$.reviews[0].id'],
    [`{"reviews":[${reviewOf('"id":1')}]}`, '$.reviews[0].id'],
    [`{"reviews":[${reviewOf().replace(':1', ':null')}]}`, '$.reviews[0].id'],
    [`{"reviews":[${reviewOf().replace(':1', ':"1"')}]}`, '$.reviews[0].id'],
    [`{"reviews":[${reviewOf().replace(':1', ':1.0')}]}`, '$.reviews[0].id'],
    [`{"reviews":[${reviewOf().replace(':1', ':9223372036854775808')}]}`, '$.reviews[0].id'],
    ['{"reviews":[{"id":1}]}', '$.reviews[0].modifiedTime'],
    [`{"reviews":[${reviewOf().replace('05-01', '02-30')}]}`, '$.reviews[0].modifiedTime'],
    [`{"reviews":[${reviewOf('"modifiedTime":null')}]}`, '$.reviews[0].modifiedTime'],
  ])('%s is broken at %s', (text, path) => {
    expect(outcome(text)).toMatchObject({ _tag: 'Decode', path })
  })

  it('nested too deep, malformed or with a record too long for anyone is refused by name', () => {
    for (const open of ['[', '{"a":'])
      expect(outcome(`{"reviews":[${reviewOf(`"a":${open.repeat(100_000)}`)}`)).toMatchObject({
        message: expect.stringContaining('500 levels'),
      })
    expect(leftOf(cut(Buffer.from(pageOf(reviewOf('"visitRecordId":"\u00e9"'))).subarray(0, -40)))).toMatchObject({
      message: expect.stringContaining('cut short'),
    })
    expect(leftOf(cut(Buffer.from('{"reviews":[],"x":"\xe9"}', 'latin1')))).toMatchObject({ message: 'not UTF-8' })
    expect(outcome(`{"reviews":[${reviewOf(`"visitRecordId":"${'x'.repeat(20_000_000)}"`)}]}`)).toMatchObject({
      path: '$.reviews[0]',
      message: expect.stringMatching(/record 1 is 20000\d+ bytes/),
    })
  })

  it('of deletions is cut by their codec', () => {
    const deleted = cutter({ ...reviewOptions, codec: DeletedReview, rename: {} })
    expect(leaves(deleted, reviewOf('"engagement":1'))).toBe(reviewOf('"unknown_attributes":{"engagement":1}'))
  })

  it('is walked afresh after one that broke off', () => {
    const whole = pageOf(reviewOf('"rating":1,"contents":[{"id":1,"sentiments":[{"id":2}]}]'))
    for (let end = 0; end < whole.length; end++) expect(leftOf(cut(whole.subarray(0, end)))._tag).toBe('Decode')
    const { rows } = rightOf(cut(whole))
    expect(isAsItCame(rows[0])).toBe(true)
  })
})
