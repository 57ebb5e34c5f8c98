import { describe, expect, it } from 'vitest'
import { DeletedReview, Review } from '../../../connector/api/model/review'
import { createCutState, createPlaceTable } from '../../../connector/export/cut/cut-state'
import { createOffsetReader } from '../../../connector/export/cut/offsets'
import { type CutPage, createCutter } from '../../../connector/export/cut/page'
import { readRecord, toCutRecord } from '../../../connector/export/cut/record'
import { attributePaths, compileShape } from '../../../connector/export/cut/shape'
import {
  cutReviews as cut,
  cutText,
  expectCut,
  expectError,
  isUnchanged,
  reviewJson,
  reviewOptions,
  reviewPage,
} from '../../support/review-page'

const bytes = (text: string): Uint8Array => Buffer.from(text)

describe('cutter', () => {
  it('gives each record its slice, its digits and its time', () => {
    const first = reviewJson('"rating":4.5')
    const second = '{ "modifiedTime" : "2024-05-01T12:11:12+02:00", "id":9007199254740993 }'
    const { rows } = expectCut(cut(reviewPage(first, second)))
    expect(rows.map(({ id, modifiedTime }) => [id, modifiedTime])).toEqual([
      ['1', Date.parse('2024-05-01T10:11:12.345Z')],
      ['9007199254740993', Date.parse('2024-05-01T10:11:12Z')],
    ])
    expect(Buffer.from(rows[0]?.raw ?? []).toString()).toBe(first)
    expect(isUnchanged(rows[0])).toBe(true)
    expect(Buffer.from(rows[1]?.raw ?? []).toString()).toBe(second)
    expect(Buffer.from(rows[1]?.json ?? []).toString()).toBe(
      '{ "modifiedTime" : "2024-05-01T10:11:12.000Z", "id":9007199254740993 }',
    )
  })

  it('keeps integers of 64 bits wherever they stand', () => {
    const long = reviewJson(
      '"contents":[{"id":9007199254740993,"sentiments":[{"id":9007199254740995,"reviewId":-9223372036854775808}],' +
        '"liabilities":[{"liabilityId":9223372036854775807}]}],"textAnalytics":{"run":18446744073709551617}',
    )
    expect(cutText(cut, long)).toBe(long)
    expect(
      cutText(cut, long.replace('}]}],"text', '}]}],"contents":null,"contents":[{"id":9007199254740993}],"text')),
    ).toContain('"contents":[{"id":9007199254740993}]')
  })

  it('finds the end of a string of any length, and what may not stand in it', () => {
    for (let length = 0; length < 24; length++)
      for (let at = 0; at <= length; at++) {
        const text = (middle: string): string => `${'x'.repeat(at)}${middle}${'y'.repeat(length - at)}`
        const whole = (middle: string): string => reviewJson(`"surveyBarCode":"${text(middle)}","rating":1`)
        for (const middle of ['', '\\"', '\\\\', '\\u00e9', ' !#[]~\u007f', 'é😀'])
          expect(cutText(cut, whole(middle))).toBe(whole(middle))
        for (const middle of ['\t', '\u0001', '\\x', '"'])
          expect(expectError(cut(reviewPage(whole(middle))))).toMatchObject({ _tag: 'Decode' })
      }
  })

  it('nulls what is of the wrong type and says where', () => {
    const [row] = expectCut(
      cut(
        reviewPage(
          reviewJson(
            '"rating":"five","contents":[{"id":1},{"id":"x","sentiments":[{"id":1},7],' +
              '"noOfSentiments":9223372036854775808}],' +
              '"mentionTime":"2024-02-30T00:00:00Z","brand":{}',
          ),
        ),
      ),
    ).rows
    expect(Buffer.from(row?.json ?? []).toString()).toBe(
      reviewJson(
        '"rating":null,"contents":[{"id":1},{"id":null,"sentiments":null,"noOfSentiments":null}],' +
          '"mentionTime":null,"brand":null',
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
    expect(cutText(cut, reviewJson('"rating":1e400,"taskDetails":{"id":1e3},"source":{"id":1e18}'))).toBe(
      reviewJson('"rating":null,"taskDetails":{"id":1000},"source":{"id":null}'),
    )
  })

  it('nulls a number so small that a double makes it 0, and names it', () => {
    const [row] = expectCut(cut(reviewPage(reviewJson('"rating":1e-400')))).rows
    expect(row?.changes).toEqual([{ field: 'rating', change: 'NULLED', reason: 'SOURCE_SERIALIZATION_ERROR' }])
    for (const text of ['0e-400', '-0.0E-999', '1e-300'])
      expect(cutText(cut, reviewJson(`"rating":${text}`))).toBe(reviewJson(`"rating":${text}`))
    const long = `0.${'0'.repeat(400)}`
    expect(cutText(cut, reviewJson(`"rating":${long},"reviewScore":${long}1`))).toBe(
      reviewJson(`"rating":${long},"reviewScore":null`),
    )
  })

  it('leaves null where it may stand', () => {
    const [row] = expectCut(cut(reviewPage(reviewJson('"rating":null,"contents":null,"location":{"id":null}')))).rows
    expect(isUnchanged(row)).toBe(true)
    expect(row).not.toHaveProperty('changes')
  })

  it('takes engagement for engagements, and never sends a key twice', () => {
    expect(cutText(cut, reviewJson('"engagement":[{"engagement":"Hi"}]'))).toBe(
      reviewJson('"engagements":[{"engagement":"Hi"}]'),
    )
    expect(cutText(cut, reviewJson('"\\u0065ngagement" :[]'))).toBe(reviewJson('"engagements" :[]'))
    expect(cutText(cut, reviewJson('"engagements":null,"engagement":[{"engagement":"Hi"}]'))).toBe(
      reviewJson('"engagements":[{"engagement":"Hi"}]'),
    )
    expect(
      cutText(cut, reviewJson('"rating":1,"rating":2,"source":{"id":1,"id":2},"textAnalytics":{"a":{"b":1,"b":2}}')),
    ).toBe(reviewJson('"rating":2,"source":{"id":2},"textAnalytics":{"a":{"b":2}}'))
  })

  it.each([
    ['[{"engagement":"a"}]', '[{"engagement":"b"}]', '[{"engagement":"a"},{"engagement":"b"}]'],
    [
      '[{"engagement":"a"},{"engagement":"b"}]',
      ' [ {"engagement" : "b"}, {"engagement":"a"}]',
      '[{"engagement":"a"},{"engagement":"b"}]',
    ],
    [
      '[{"engagement":"a","engagementTime":"2024-05-01T10:11:12.345Z"}]',
      '[{"engagementTime":"2024-05-01T10:11:12.345Z","engagement":"\\u0061"},{}]',
      '[{"engagement":"a","engagementTime":"2024-05-01T10:11:12.345Z"},{}]',
    ],
    ['[{"engagement":"a"},{"engagement":"a"}]', '[]', '[{"engagement":"a"},{"engagement":"a"}]'],
    ['[]', '[{"engagement":"b"}]', '[{"engagement":"b"}]'],
    ['null', '[{"engagement":"b"}]', '[{"engagement":"b"}]'],
    ['[{"engagement":"a"}]', 'null', '[{"engagement":"a"}]'],
    ['[]', '[]', '[]'],
  ])('joins engagements %s and engagement %s without repeats, and reports nothing', (own, other, joined) => {
    for (const members of [
      `"engagements":${own},"engagement":${other}`,
      `"engagement":${other},"engagements":${own}`,
    ]) {
      const [row] = expectCut(cut(reviewPage(reviewJson(members)))).rows
      expect(JSON.parse(Buffer.from(row?.json ?? []).toString())).toEqual(
        JSON.parse(reviewJson(`"engagements":${joined}`)),
      )
      expect(row).not.toHaveProperty('changes')
    }
  })

  it.each([
    ['[{"engagement":"a"}]', '"b"', '[{"engagement":"a"}]'],
    ['"a"', '[{"engagement":"b"}]', '[{"engagement":"b"}]'],
    ['[{"engagement":"a"}]', '["b",{"engagement":"c"},null]', '[{"engagement":"a"},{"engagement":"c"}]'],
  ])('reports a change if engagements %s and engagement %s do not join', (own, other, kept) => {
    const [row] = expectCut(cut(reviewPage(reviewJson(`"engagements":${own},"engagement":${other}`)))).rows
    expect(JSON.parse(Buffer.from(row?.json ?? []).toString())).toEqual(JSON.parse(reviewJson(`"engagements":${kept}`)))
    expect(row?.changes).toEqual([{ field: 'engagements', change: 'TRUNCATED', reason: 'SOURCE_SERIALIZATION_ERROR' }])
  })

  it('reports no change of engagements that are dropped', () => {
    const dropping = createCutter({ ...reviewOptions, actions: { engagements: 'drop' } })
    const [row] = expectCut(dropping(reviewPage(reviewJson('"engagements":[{}],"engagement":"b"')))).rows
    expect(Buffer.from(row?.json ?? []).toString()).toBe(reviewJson())
    expect(row).not.toHaveProperty('changes')
  })

  it('puts half a surrogate pair right, since no UTF-8 can say it', () => {
    expect(cutText(cut, reviewJson('"visitRecordId":"a\\ud83d","textAnalytics":{"\\ude00":"\\ud83d\\ude00"}'))).toBe(
      reviewJson('"visitRecordId":"a\\ufffd","textAnalytics":{"\\ufffd":"\\ud83d\\ude00"}'),
    )
  })

  it.each([
    ['a text', '"visitRecordId":"a\\ud83d"', ['visitRecordId']],
    ['two halves in one text', '"visitRecordId":"\\ude00\\ud83d"', ['visitRecordId']],
    [
      'texts of elements',
      '"contents":[{"response":"\\ud83d"},{},{"question":"\\udfff"}]',
      ['contents.0.response', 'contents.2.question'],
    ],
    ['a free object', '"textAnalytics":{"\\ude00":1,"a":["\\ude00"]}', ['textAnalytics']],
    ['undeclared attributes', '"mood":"\\ud800","x\\udc00":{"a":"\\ud800"},"rating":1', ['unknown_attributes']],
    [
      'an undeclared attribute of an object',
      '"location":{"floor":"\\ud800","\\udc00":1}',
      ['location.floor', 'location.\ufffd'],
    ],
    ['an attribute that follows one that is left out', '"x":1,"visitRecordId":"\\ud800"', ['visitRecordId']],
    [
      'a whole pair, or a replacement character of the service',
      '"visitRecordId":"\\ud83d\\ude00 \\ufffd \ufffd"',
      undefined,
    ],
    ['an attribute that comes twice', '"visitRecordId":"\\ud800","visitRecordId":"b"', undefined],
  ])('reports half a surrogate pair in %s as a change', (_, members, fields) => {
    const [row] = expectCut(cut(reviewPage(reviewJson(members)))).rows
    expect(row?.changes).toEqual(
      fields?.map((field) => ({ field, change: 'TRUNCATED', reason: 'SOURCE_SERIALIZATION_ERROR' })),
    )
    expect(JSON.stringify(JSON.parse(Buffer.from(row?.json ?? []).toString()))).not.toMatch(/\\u[dD]/)
  })

  it('reports no change of what is not sent, and one if a value is sent as null', () => {
    const dropping = createCutter({ ...reviewOptions, undeclared: 'drop', actions: { visitRecordId: 'drop' } })
    const [row] = expectCut(
      dropping(
        reviewPage(reviewJson('"visitRecordId":"\\ud800","mood":"\\ud800","rating":"\\ud800","brand":{"a":"\\ud800"}')),
      ),
    ).rows
    expect(row?.changes?.map(({ field, change }) => `${field} ${change}`)).toEqual(['rating NULLED', 'brand NULLED'])
  })

  it('sends each record on one line', () => {
    const pretty = JSON.stringify({ reviews: [JSON.parse(reviewJson('"source":{"id":1,"name":"a\\nb"}'))] }, null, 2)
    const [row] = expectCut(cut(bytes(pretty.replaceAll('\n', '\r\n')))).rows
    const text = Buffer.from(row?.json ?? []).toString()
    expect(text).not.toMatch(/[\r\n]/)
    expect(JSON.parse(text)).toEqual(JSON.parse(reviewJson('"source":{"id":1,"name":"a\\nb"}')))
  })
})

describe('undeclared attributes', () => {
  const page = reviewPage(
    reviewJson('"mood":{"x":[1]},"rating":1,"unknown_attributes":{"y":1},"contents":[{"tone":1},{"tone":2}]'),
    reviewJson('"mood":1'),
  )

  it('are collected, and reported once a page', () => {
    const { rows, unknownPaths } = expectCut(cut(page))
    expect(Buffer.from(rows[0]?.json ?? []).toString()).toBe(
      reviewJson(
        '"rating":1,"contents":[{"tone":1},{"tone":2}],' +
          '"unknown_attributes":{"mood":{"x":[1]},"unknown_attributes":{"y":1}}',
      ),
    )
    expect(unknownPaths).toEqual(['reviews.mood', 'reviews.unknown_attributes', 'reviews.contents.tone'])
  })

  it.each(['anna.smith@example.com', 'Anna Smith', '+43 660 1234567', 'visit_20261121', 'Jürgen', '', 'a'.repeat(41)])(
    'are reported without a name that may be data: %s',
    (name) => {
      const named = reviewPage(reviewJson(`${JSON.stringify(name)}:1,"contents":[{${JSON.stringify(name)}:2}]`))
      expect(expectCut(cut(named)).unknownPaths).toEqual(['reviews.***', 'reviews.contents.***'])
      const refused = createCutter({ ...reviewOptions, undeclared: 'fail' })(named)
      expect(refused).toMatchObject({ left: { path: 'reviews.***' } })
    },
  )

  it('are dropped', () => {
    const { rows } = expectCut(createCutter({ ...reviewOptions, undeclared: 'drop' })(page))
    expect(Buffer.from(rows[0]?.json ?? []).toString()).toBe(
      reviewJson('"rating":1,"contents":[{"tone":1},{"tone":2}]'),
    )
  })

  it('fail by name', () => {
    expect(expectError(createCutter({ ...reviewOptions, undeclared: 'fail' })(page))).toMatchObject({
      _tag: 'Decode',
      path: 'reviews.mood',
      remedy: expect.stringContaining('on_unknown_attribute'),
    })
  })

  it('may be of many names, repeat them and spell them as they like', () => {
    for (let start = 0; start < 2000; start += 100) {
      const names = Array.from({ length: 100 }, (_, i) => `n${start + i}`)
      const members = names.map((name) => `"${name}":1`).join(',')
      const collected = JSON.parse(cutText(cut, reviewJson(`${members},"n${start}":2,"\\u006e${start + 1}":2`)))
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
      expect(JSON.parse(cutText(cut, reviewJson(members(all)))).unknown_attributes).toEqual(
        Object.fromEntries(all.map((name, i) => [name, i])),
      )
  })

  it('that come first leave no comma behind', () => {
    const drop = createCutter({ ...reviewOptions, undeclared: 'drop' })
    expect(cutText(drop, '{ "a":1 , "b":2 ,"id":1,"c":3,"modifiedTime":"2024-05-01T10:11:12.345Z", "d":4 }')).toBe(
      '{"id":1,"modifiedTime":"2024-05-01T10:11:12.345Z" }',
    )
  })
})

describe('a cutter that is used twice at once', () => {
  const fields = { contents: [{ id: 'value', response: 'value' }] } as const
  const readOffsets = createOffsetReader(fields)
  const first = reviewPage(
    reviewJson('"mood":1,"contents":[{"id":1,"response":"a"},{"response":"b","id":"x","tone":[]}],"rating":2'),
    reviewJson('"rating":[],"contents":[{"response":"c"}],"mood":2'),
  )
  const second = reviewPage(reviewJson('"contents":[{"response":5},{"id":2,"response":"d"}],"tone":3'))
  const describePage = (page: CutPage) => ({
    unknownPaths: page.unknownPaths,
    rows: page.rows.map((row) => [
      row.id,
      Buffer.from(row.json).toString(),
      row.changes,
      readOffsets(row).contents?.elements.map(({ members: { id, response } }) => [id, response]),
    ]),
  })
  /** Cuts the page alone, with a new cutter. */
  const cutAlone = (page: Uint8Array, hash: (text: string) => string) =>
    describePage(expectCut(createCutter({ ...reviewOptions, fields, actions: { 'contents.response': hash } })(page)))

  it('keeps a page apart from another that an action cuts meanwhile', () => {
    const hash = (text: string): string => `#${text}`
    const inner: unknown[] = []
    const cut = createCutter({
      ...reviewOptions,
      fields,
      actions: {
        'contents.response': (text) => {
          if (text === 'b') inner.push(describePage(expectCut(cut(second))))
          return hash(text)
        },
      },
    })
    expect(describePage(expectCut(cut(first)))).toEqual(cutAlone(first, hash))
    expect(inner).toEqual([cutAlone(second, hash)])
  })

  it('keeps two pages apart that are read side by side, and one of them after the other is released', () => {
    const hash = (text: string): string => `#${text}`
    const cut = createCutter({ ...reviewOptions, fields, actions: { 'contents.response': hash } })
    const pages = [first, second].map((page) => expectCut(cut(page)))
    expect(pages.map(describePage)).toEqual([cutAlone(first, hash), cutAlone(second, hash)])
    pages[0]?.release?.()
    expect(pages[1] && describePage(pages[1])).toEqual(cutAlone(second, hash))
  })

  it('does not change its table', () => {
    const options = { codec: Review, primaryKey: 'id', cursor: 'modifiedTime', aliases: {}, actions: {} }
    const shape = compileShape(options)
    const state = createCutState(Buffer.from(first), reviewOptions, createPlaceTable(), new Set(), undefined, undefined)
    const record = { shape, aliases: {} }
    const start = Buffer.from(first).indexOf('{"id"')
    expect(toCutRecord(state, record, start, readRecord(state, record, start)).id).toBe('1')
    expect(state.undeclaredPaths).toEqual(new Set(['reviews.mood', 'reviews.contents.tone']))
    expect(shape).toEqual(compileShape(options))
  })
})

describe('privacy', () => {
  const cut = createCutter({
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
      cutText(
        cut,
        reviewJson(
          '"visitRecordId":"secret","contents":[{"sentiments":[{"feature":"secret"}],"id":1},' +
            '{"r\\u0065sponse":"gr\\u00fcn","sentiments":3}],' +
            '"engagement":[{"engagement":"secret","engagementTime":null}],"taskDetails":{"id":9007199254740993}',
        ),
      ),
    ).toBe(
      reviewJson(
        '"contents":[{"id":1},{"r\\u0065sponse":"#4"}],"engagements":[{"engagementTime":null}],' +
          '"taskDetails":{"id":"#9007199254740993"}',
      ),
    )
    const twice = cutText(
      cut,
      reviewJson(
        '"visitRecordId":"secret","visitRecordId":"secret","contents":[{"response":"secret","response":"secret"}]',
      ),
    )
    expect(twice).toBe(reviewJson('"contents":[{"response":"#6"}]'))
  })

  it('drops what comes first, in front of an attribute under its other name too', () => {
    const dropping = createCutter({ ...reviewOptions, actions: { visitRecordId: 'drop' }, undeclared: 'drop' })
    for (const secret of ['"visitRecordId":"secret"', '"mood":"secret"', '"mood":"\\ud83d","visitRecordId":"\\ud83d"'])
      expect(cutText(dropping, `{${secret},"engagement":[],"id":1,"modifiedTime":"2024-05-01T10:11:12.345Z"}`)).toBe(
        '{"engagements":[],"id":1,"modifiedTime":"2024-05-01T10:11:12.345Z"}',
      )
  })

  it('drops what comes in front of a key that is half a surrogate pair', () => {
    const dropping = createCutter({ ...reviewOptions, actions: { 'contents.response': 'drop' } })
    expect(cutText(dropping, reviewJson('"contents":[{"response":"secret","\\ud83d":1,"response":"secret"}]'))).toBe(
      reviewJson('"contents":[{"\\ufffd":1}]'),
    )
  })

  it('never touches what identifies a record', () => {
    for (const name of ['id', 'modifiedTime'])
      expect(() => createCutter({ ...reviewOptions, actions: { [name]: 'drop' } })).toThrow(name)
  })

  it('has no word about null and what was nulled', () => {
    expect(cutText(cut, reviewJson('"contents":[{"response":null},{"response":["secret"]}]'))).toBe(
      reviewJson('"contents":[{"response":null},{"response":null}]'),
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
  const outcome = (text: string) => expectError(cut(bytes(text)))

  it('without records is empty if it echoes, an error if it carries a status', () => {
    expect(expectCut(cut(bytes('{"filter":{"offset":7},"took":3}')))).toEqual({
      rows: [],
      filter: { offset: 7 },
      unknownPaths: [],
      hasList: false,
      release: expect.any(Function),
    })
    expect(expectCut(cut(bytes('{"reviews":null,"filter":{}}'))).hasList).toBe(false)
    expect(expectCut(cut(bytes('{"reviews":[]}'))).hasList).toBe(true)
    expect(outcome('{"status":{"code":7,"message":"no"},"filter":{}}')).toEqual({
      _tag: 'Application',
      code: '7',
      message: 'no',
      missing: '$.reviews',
    })
    expect(outcome('{"status":{"code":"E1","message":"no"},"reviews":[]}')).toMatchObject({ _tag: 'Application' })
    expect(expectCut(cut(bytes('{"status":{"code":0,"message":"SUCCESS"},"reviews":[]}'))).rows).toEqual([])
    expect(outcome('{}')).toMatchObject({ _tag: 'Decode', path: '$' })
  })

  it.each([
    '{"code":503,"message":null}',
    '{"code":"503"}',
    '{"code":500,"message":"SUCCESS"}',
    '{"code":"UNAVAILABLE"}',
    '{"code":-1,"message":null}',
  ])('without records is an error if its status has an error code: %s', (status) => {
    expect(outcome(`{"status":${status},"reviews":[],"filter":{}}`)).toMatchObject({ _tag: 'Application' })
  })

  it.each([
    '{"code":200,"message":null}',
    '{"code":0}',
    '{"code":1,"message":null}',
    '{"code":"OK"}',
    '{"message":null}',
    '{"code":1207,"message":"success"}',
  ])('without records is empty with the status %s', (status) => {
    expect(expectCut(cut(bytes(`{"status":${status},"reviews":[]}`))).rows).toEqual([])
  })

  it.each([
    ['[]', '$'],
    ['', '$'],
    ['<html>', '$'],
    ['{"reviews":{}}', '$.reviews'],
    ['{"reviews":[],"reviews":[]}', '$.reviews'],
    ['{"reviews":[],"filter":[]}', '$.filter'],
    ['{"reviews":[],"filter":{"offset":"1"}}', '$.filter.offset'],
    [`{"reviews":[${reviewJson()},null]}`, '$.reviews[1]'],
    ['{"reviews":[{"modifiedTime":"2024-05-01T10:11:12.345Z"}]}', '$.reviews[0].id'],
    [`{"reviews":[${reviewJson('"id":1')}]}`, '$.reviews[0].id'],
    [`{"reviews":[${reviewJson().replace(':1', ':null')}]}`, '$.reviews[0].id'],
    [`{"reviews":[${reviewJson().replace(':1', ':"1"')}]}`, '$.reviews[0].id'],
    [`{"reviews":[${reviewJson().replace(':1', ':1.0')}]}`, '$.reviews[0].id'],
    [`{"reviews":[${reviewJson().replace(':1', ':9223372036854775808')}]}`, '$.reviews[0].id'],
    ['{"reviews":[{"id":1}]}', '$.reviews[0].modifiedTime'],
    [`{"reviews":[${reviewJson().replace('05-01', '02-30')}]}`, '$.reviews[0].modifiedTime'],
    [`{"reviews":[${reviewJson('"modifiedTime":null')}]}`, '$.reviews[0].modifiedTime'],
  ])('%s is broken at %s', (text, path) => {
    expect(outcome(text)).toMatchObject({ _tag: 'Decode', path })
  })

  it('nested too deep, malformed or with a record too long for anyone is refused by name', () => {
    for (const open of ['[', '{"a":'])
      expect(outcome(`{"reviews":[${reviewJson(`"a":${open.repeat(100_000)}`)}`)).toMatchObject({
        message: expect.stringContaining('500 levels'),
      })
    expect(
      expectError(cut(Buffer.from(reviewPage(reviewJson('"visitRecordId":"\u00e9"'))).subarray(0, -40))),
    ).toMatchObject({
      message: expect.stringContaining('cut short'),
    })
    expect(expectError(cut(Buffer.from('{"reviews":[],"x":"\xe9"}', 'latin1')))).toMatchObject({ message: 'not UTF-8' })
    expect(outcome(`{"reviews":[${reviewJson(`"visitRecordId":"${'x'.repeat(20_000_000)}"`)}]}`)).toMatchObject({
      path: '$.reviews[0]',
      message: expect.stringMatching(/record 1 is 20000\d+ bytes/),
    })
  })

  it('of deletions is cut by their codec', () => {
    const deleted = createCutter({ ...reviewOptions, codec: DeletedReview, aliases: {} })
    expect(cutText(deleted, reviewJson('"engagement":1'))).toBe(reviewJson('"unknown_attributes":{"engagement":1}'))
  })

  it('is walked afresh after one that broke off', () => {
    const whole = reviewPage(reviewJson('"rating":1,"contents":[{"id":1,"sentiments":[{"id":2}]}]'))
    for (let end = 0; end < whole.length; end++) expect(expectError(cut(whole.subarray(0, end)))._tag).toBe('Decode')
    const { rows } = expectCut(cut(whole))
    expect(isUnchanged(rows[0])).toBe(true)
  })
})
