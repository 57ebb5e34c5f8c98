import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { defects } from '../simulation/defects'
import { simulate } from '../support/simulate'

/**
 * The promise that each safeguard keeps, and what the scenario of a world must say, as JSON, where few worlds need it.
 */
const promises: Readonly<Record<string, readonly [promise: string, ...where: ReadonlyArray<string>]>> = {
  'pages that need not join': ['nothing lost'],
  'rows in another order accepted': ['nothing lost'],
  'windows not counted': ['nothing lost'],
  // A read that is longer than the lookback, and a `Date` that is ahead of the rows.
  'no slack': ['nothing stale', '"clockSkew":(1200000|5400000)', '"lookback_minutes":1,', '"churn":0[.]'],
  'a token used until it is refused': ['a valid token'],
  'no new token after a refusal': ['end of a run'],
  'no lookback': ['nothing lost'],
  'the latest cursor for all streams of a read': ['nothing lost', '"apart":'],
  'sent rows forgotten': ['nothing again'],
  'state before rows': ['no state ahead'],
  'rate too high': ['the rate'],
  'Retry-After for the refused request alone': ['Retry-After'],
  'Retry-After ignored': ['Retry-After'],
  'secrets in errors': ['no secret'],
  'no response time-out': ['the run ends'],
  'a partial write taken for whole': ['whole lines'],
  'no wait for the reader of stdout': ['held rows', '"padding":'],
  // More pages than a world with 4 requests at a time may hold are more than it has.
  'pages asked for ahead without bound': ['held rows', '"padding":', '"max_concurrency":2'],
  'state before its visits': ['state before rows'],
  'state before its dead letters': ['state before rows'],
  'dead letters not synced': ['state before rows', '"hasLetterDisk":true'],
  'the name of the dead letters not synced': ['state before rows', '"hasLetterDisk":true'],
  'other visit ids in each run': ['visits once'],
  'records of one location at the same time': ['state before rows'],
  'visits before their locations': ['locations first'],
  'reading without end': ['held rows'],
  'an unnamed visit taken for accepted': ['state before rows'],
  'a lost record unnoticed': ['state before rows'],
  'a cut input taken for whole': ['end of a run'],
  'state before the rows of its commit': ['no state ahead'],
  'a deleted review comes back': ['nothing beyond'],
  'old contents stay': ['nothing doubled'],
  'a half-made file is refused': ['the file opens'],
  'comments of the last month not read again': ['nothing stale'],
  'the first name of a location kept': ['nothing stale'],
  'one round where no filter cuts the list': ['nothing lost', '"order":"random"', '"churn":0[.]', '"clamp":(7|20),'],
  'reviews without a mention time not looked for': [
    'nothing lost',
    '"order":"random"',
    '"unmentioned":0[.]',
    '"mentionFilter":"kept"',
  ],
  'no end probe': ['nothing lost', '"hasShortPages":true'],
  'one row sets the certain time': [
    'nothing lost',
    '"futureDate":3600000',
    '"clockSkew":(1200000|5400000)',
    '"lookback_minutes":1,',
  ],
  'a refused offset fails the read': ['end of a run', '"refusesEnd":true'],
  'no second scan': ['nothing lost', '"program":"(source|tap)-feedback"', '"what":"kill'],
  'an echo unchecked': ['nothing lost', '"fault":"other offset"'],
  'a location sent before its ledger has it': ['nothing stale', '"hasLedger":true'],
  'a ledger not synced': ['nothing stale', '"hasLedger":true', '"fault":"power failure"'],
  'the name of a ledger not synced': ['nothing stale', '"hasLedger":true', '"fault":"power failure"'],
  'a ledger rewritten in its place': ['nothing stale', '"hasLedger":true', '"fault":"(torn write|full disk)"'],
  'an entry behind one that was cut': ['a whole ledger', '"fault":"full disk"', '"max_concurrency":[24]'],
  'a part of a list taken for whole': ['a whole list', '"program":"target', '"hasLedger":true', '"what":"close input"'],
  'a record without a code passed over': ['a whole list', '"badRate":0.1', '"reconcile":'],
  'a wrong record taken off its list': ['nothing listed deactivated', '"badRate":0.1', '"reconcile":'],
  'a location of another type deactivated': ['nothing listed deactivated', '"hasTypes":true'],
  'a refused location forgotten': ['nothing stale', '"hasLedger":true', '"badRate":0.1'],
  'an unknown location forgotten': ['nothing stale', '"hasLedger":true'],
  'no limit of deactivations': ['few deactivations', '"most":10', '"cutRate":0.3'],
  'locations of others deactivated': [
    'only its own deactivated',
    '"foreign":[1-9]',
    '"hasLedger":true,"deactivatesUnlisted":false',
  ],
  'a code in another case taken for another': [
    'nothing listed deactivated',
    '"isLowerCase":true',
    '"deactivatesUnlisted":true',
  ],
  'a location in another case not deactivated': [
    'nothing stale',
    '"isLowerCase":true',
    '"hasLedger":true,"deactivatesUnlisted":false',
  ],
  'one page of a list taken for all': ['nothing stale', '"page":5,', '"hasLedger":true'],
  'a changing list read once': ['nothing lost', '"list":[{]"locations":40', '"churn":0[.]'],
  'the audit of a run in the midst of its streams': ['a right audit', '"audit":true', 'tap-feedback', '"what":"kill'],
  'an older version of a row counted in the audit': ['a right audit', '"audit":true', '"churn":0[.]'],
  'tokens beside the rate': ['the rate', '"requests_per_minute":30', '"tokenSeconds":120'],
  'the forgotten are read again': ['forgotten for good', '"forget":'],
  'a new file whose folder is not synced': [
    'forgotten for good',
    '"forget":',
    '"fault":"power failure","amount":[012][}]',
  ],
  'only contents leave with their version': ['nothing beyond', '"hasFamily":true'],
  'a single row tells the time': [
    'nothing lost',
    '"reviews":[0-9],',
    '"futureDate":3600000',
    '"clockSkew":(1200000|5400000)',
  ],
}

/** The worlds that run the code of a room. */
const kinds = {
  'cdk/program/stdout': 'exports,parts',
  'export/': 'exports',
  'reading/': 'exports',
  'streams/export-reader': 'exports,parts,snapshot',
  'streams/export-state': 'exports',
  'streams/entities/': 'entities',
  'streams/review-': 'parts',
  'snapshot/': 'snapshot',
  'cdk/airbyte/decode': 'writing',
  'cdk/write/': 'writing',
  'sinks/': 'writing',
  'api/lookup-list': 'writing,entities',
  'streams/sync-audit': 'exports,parts',
  'streams/version-digest': 'exports,parts',
}

/**
 * Seeds that have shown that a safeguard is missing: the search begins there. Worlds change, so that it may have to go
 * on.
 */
const firstSeeds = new Map(
  readFileSync(join(__dirname, 'defects.txt'), 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => [line.slice(line.indexOf(' ') + 1), Number.parseInt(line, 10)]),
)
const searchFrom = (defect: string): number => Number(process.env.DEFECTS_FROM ?? firstSeeds.get(defect) ?? 1)

/** What worlds print with all safeguards, by their seed. */
const wholeWorlds = new Map<string, string>()

describe('some seed shows that a safeguard is missing', () => {
  test('of each', () => {
    expect(Object.keys(promises)).toEqual(Object.keys(defects))
  })

  test.each(Object.entries(promises))('%s', async (defect, [promise, ...where]) => {
    const kind = Object.entries(kinds).flatMap(([room, name]) =>
      defects[defect]?.file.startsWith(room) ? ['--kind', name] : [],
    )
    const { status, stdout } = await simulate(
      ...[
        '--seeds',
        `${searchFrom(defect)}-${searchFrom(defect) + 3000}`,
        '--until-broken',
        '--oracle',
        promise,
        '--defect',
        defect,
        ...kind,
      ],
      ...where.flatMap((pattern) => ['--where', pattern]),
    )
    expect(stdout).toContain(`: ${promise}: `)
    expect(status).toBe(1)
    // The same world keeps its promises with the safeguard. Some worlds show several.
    const [, seed = ''] = /^seed (\d+): /m.exec(stdout) ?? []
    const whole = wholeWorlds.get(seed) ?? (await simulate('--seeds', seed, '--hashes')).stdout
    wholeWorlds.set(seed, whole)
    expect(whole).toContain('0 broke a promise')
  })
})
