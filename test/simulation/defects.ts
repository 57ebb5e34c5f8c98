import { statSync } from 'node:fs'
import { appendFile } from 'node:fs/promises'
import Module from 'node:module'
import { join } from 'node:path'
import * as E from 'fp-ts/Either'

// biome-ignore lint/suspicious/noExplicitAny: a file keeps most of these functions, and their types, to itself
type Code = any
type Value = ((...args: Code[]) => Code) | object | number

/**
 * A safeguard of the product, switched off: what `file` declares, or imports, under `name` is replaced when the file is
 * loaded. `load` gives the exports of another file of the product.
 */
type Defect = {
  readonly file: string
  readonly name: string
  readonly isImport: boolean
  readonly replace: (original: Code, load: (file: string) => Code) => Value
}

/** Replaces a function or a constant that the file declares at its top level, exported or not. */
const declared = (file: string, name: string, replace: Defect['replace']): Defect => ({
  file,
  name,
  isImport: false,
  replace,
})

/** Replaces members of a module that the file imports. */
const imported = (file: string, name: string, members: (module: Code) => object): Defect => ({
  file,
  name,
  isImport: true,
  replace: (module) => Object.create(module, Object.getOwnPropertyDescriptors(members(module))),
})

const doNothing = () => async () => undefined

/** Each safeguard whose loss the simulation has to notice, by name. */
export const defects: Readonly<Record<string, Defect>> = {
  'rows in another order accepted': declared('reading/pages', 'compareOrder', (compareOrder) => (...args) => ({
    ...compareOrder(...args),
    problem: undefined,
  })),
  'windows not counted': declared('reading/windows', 'isCounted', () => async () => true),
  'pages that need not join': declared('reading/pages', 'compareOrder', (compareOrder) => (...args) => ({
    ...compareOrder(...args),
    knownRows: Number.POSITIVE_INFINITY,
  })),
  'no slack': declared('reading/clock', 'cursorSlack', () => () => 0),
  'a token used until it is refused': declared(
    'api/http/token-exchange',
    'decodeToken',
    (decodeToken) =>
      (...args) =>
      (answer: Code) =>
        E.map((token: object) => ({ ...token, lifetime: Number.POSITIVE_INFINITY }))(decodeToken(...args)(answer)),
  ),
  'no new token after a refusal': declared('api/http/token', 'createExchangeTokenSource', (create) => (...args) => ({
    ...create(...args),
    refuse: () => false,
  })),
  'no lookback': declared(
    'reading/clock',
    'filterFrom',
    (filterFrom) => (startDate, cursor) => filterFrom(startDate, cursor, 0),
  ),
  'the latest cursor for all streams of a read': declared(
    'streams/export-reader',
    'earlierCursor',
    () => (a, b) => (a._tag === 'None' || b._tag === 'None' || a.value < b.value ? b : a),
  ),
  'sent rows forgotten': declared('streams/export-state', 'encodeExportState', (encode) => (...args) => {
    const { recent: _, ...state } = encode(...args)
    return state
  }),
  'state before rows': declared(
    'streams/export-reader',
    'readSharedScan',
    (readSharedScan) =>
      async function* (...args) {
        let held: Code[] = []
        for await (const event of readSharedScan(...args)) {
          if (E.isRight<{ _tag: string }>(event) && event.right._tag === 'Rows') held.push(event)
          else yield event
          if (!E.isRight<{ _tag: string }>(event) || event.right._tag !== 'Checkpoint') continue
          yield* held
          held = []
        }
        yield* held
      },
  ),
  'rate too high': declared('api/http/rate-limit', 'minInterval', () => (perMinute) => Math.ceil(50_000 / perMinute)),
  'Retry-After for the refused request alone': declared(
    'api/http/rate-limit',
    'createThrottle',
    (createThrottle) => (limiter, clock) => createThrottle(limiter, clock, -1),
  ),
  'Retry-After ignored': declared(
    'api/http/retry-after',
    'parseWait',
    (parseWait) => (status, headers, now) => parseWait(status, { ...headers, 'retry-after': undefined }, now),
  ),
  'secrets in errors': declared('api/http/send', 'readErrorMessage', (readErrorMessage) => (body, hidden) => {
    try {
      return String(JSON.parse(body).status.message)
    } catch {
      return readErrorMessage(body, hidden)
    }
  }),
  'no response time-out': declared(
    'api/http/transport',
    'createTransport',
    (create) =>
      (options, ...others) =>
        create({ ...options, responseSeconds: 1_000_000 }, ...others),
  ),
  'a partial write taken for whole': imported('cdk/program/stdout', 'node:fs', (fs) => ({
    write: (fd: number, bytes: Buffer, from: number, length: number, at: null, done: Code) =>
      fs.write(fd, bytes, from, length, at, (error: Code) => done(error, length)),
  })),
  'no wait for the reader of stdout': declared(
    'cdk/program/stdout',
    'createStdoutWriter',
    (create) => (fd) => create(fd, Number.POSITIVE_INFINITY),
  ),
  'pages asked for ahead without bound': declared(
    'reading/pages',
    'pagesAhead',
    (pagesAhead) =>
      (session, ...others) =>
        pagesAhead({ ...session, env: { ...session.env, concurrency: 40 } }, ...others),
  ),
  'state before its visits': declared('cdk/write/acknowledge', 'createAckQueue', (create) => (options) => {
    const queue = create(options)
    return {
      ...queue,
      addRecord: (...args: Code[]) => Object.assign(queue.addRecord(...args), { status: { _tag: 'Accepted' } }),
    }
  }),
  'state before its dead letters': declared(
    'cdk/write/acknowledge',
    'createAckQueue',
    (create) => (options) =>
      create({ ...options, deadLetters: { ...options.deadLetters, flush: async () => undefined } }),
  ),
  'dead letters not synced': imported('cdk/write/dead-letters', 'node:fs/promises', (fs) => ({
    open: async (...args: Code[]) => Object.assign(await fs.open(...args), { sync: async () => undefined }),
  })),
  'the name of the dead letters not synced': declared('cdk/write/dead-letters', 'syncFolder', doNothing),
  'other visit ids in each run': declared(
    'sinks/visit-records',
    'deriveVisitId',
    (deriveVisitId) =>
      (...args) =>
        `${deriveVisitId(...args)}${Date.now()}`,
  ),
  'records of one location at the same time': declared(
    'cdk/write/batch',
    'takeBatch',
    (takeBatch) => (queue, size, _, flush) => {
      const items = queue.map((item: object, i: number) => ({ ...item, key: `${i}`, original: item }))
      const { batch, rest } = takeBatch(items, size, new Set(), flush)
      const toOriginal = ({ original }: Code) => original
      return { batch: batch.map(toOriginal), rest: rest.map(toOriginal) }
    },
  ),
  'visits before their locations': declared('cdk/write/batch', 'areEmpty', () => () => true),
  'reading without end': declared('cdk/write/acknowledge', 'createAckQueue', (create) => (options) => {
    const queue = create(options)
    return { ...queue, pendingSize: () => ({ ...queue.pendingSize(), count: 0 }) }
  }),
  'an unnamed visit taken for accepted': declared(
    'sinks/visit-records',
    'toVerdict',
    (toVerdict) => (outcome) => toVerdict(outcome ?? 'Success'),
  ),
  'a lost record unnoticed': declared('cdk/airbyte/record-counter', 'describeDifference', () => () => undefined),
  'a cut input taken for whole': declared(
    'cdk/write/sink-routes',
    'describeBrokenEndings',
    (describe) => (routes) => describe(routes, false),
  ),
  'state before the rows of its commit': declared(
    'snapshot/load/commit',
    'commitReceived',
    (commitReceived, load) => async (db, received, tables, now) => {
      const { saveLoadStatesSql } = load('snapshot/load/earlier-runs')
      for (const { load, state } of received.changes)
        if (state !== undefined)
          for (const sql of saveLoadStatesSql(load, [{ stream: load.stream, state }], now)) await db.run(sql)
      return commitReceived(db, received, tables, now)
    },
  ),
  'a deleted review comes back': declared('snapshot/load/merge', 'applyKnownDeletions', doNothing),
  'old contents stay': declared('snapshot/load/merge', 'removeOldChildren', doNothing),
  'a half-made file is refused': declared('snapshot/store/file', 'isUnfinished', () => () => false),
  'comments of the last month not read again': declared(
    'streams/entities/state',
    'nextWindowFrom',
    (nextWindowFrom) => (cursor, startDate) => nextWindowFrom(cursor, startDate, 0),
  ),
  'the first name of a location kept': declared('streams/review-dimensions', 'createVersionFilter', () => () => {
    const keys = new Set<string>()
    return (key: string) => keys.size < keys.add(key).size
  }),
  'one round where no filter cuts the list': declared('reading/rounds', 'quietRounds', () => 0),
  'reviews without a mention time not looked for': declared(
    'reading/unmentioned',
    'readUnmentioned',
    () => async function* () {},
  ),
  'no end probe': declared('reading/end', 'findEnd', () => async (_session, _window, { rows }) => ({
    _tag: 'End',
    inserted: 0,
    rows,
  })),
  'one row sets the certain time': declared(
    'reading/clock',
    'confirmedTime',
    () => (rows, latest) =>
      Math.max(...rows.flatMap(({ modifiedTime }: Code) => (modifiedTime > latest ? [] : modifiedTime))),
  ),
  'a refused offset fails the read': declared('export/list', 'mayRefuseOffset', () => () => false),
  'no second scan': declared(
    'streams/export-reader',
    'readUnfinished',
    (readUnfinished) => (end) => readUnfinished({ ...end, isResumed: false }),
  ),
  'an echo unchecked': declared('export/fetch-page', 'checkEcho', () => () => undefined),
  'a location sent before its ledger has it': declared(
    'sinks/ledger',
    'openLedger',
    (openLedger) =>
      (...args) =>
      async () =>
        E.map((ledger: object) => ({ ...ledger, announce: async () => undefined }))(await openLedger(...args)()),
  ),
  'a ledger not synced': imported('sinks/ledger', 'node:fs/promises', (fs) => ({
    appendFile: (path: string, text: string) => fs.appendFile(path, text),
  })),
  'the name of a ledger not synced': imported('sinks/ledger', '../cdk', () => ({ syncFolder: async () => undefined })),
  'a ledger rewritten in its place': imported('sinks/ledger', 'node:fs/promises', (fs) => ({
    writeFile: (path: string, ...others: Code[]) => fs.writeFile(path.replace(/\.new$/, ''), ...others),
    rename: async () => undefined,
  })),
  'an entry behind one that was cut': declared(
    'sinks/ledger',
    'openLedger',
    (openLedger) =>
      (path, ...others) =>
      async () => {
        let last: Promise<unknown> = Promise.resolve()
        const append = (entries: ReadonlyArray<object>) => {
          const lines = entries.map((entry) => `${JSON.stringify(entry)}\n`).join('')
          last = last.catch(() => undefined).then(() => appendFile(path, lines, { flush: true }))
          return last
        }
        const announce = (locations: ReadonlyArray<object>) =>
          append(locations.map((location) => ({ ...location, active: 'unknown' })))
        return E.map((ledger: object) => ({ ...ledger, append, announce }))(await openLedger(path, ...others)())
      },
  ),
  'a part of a list taken for whole': declared(
    'sinks/locations',
    'findObstacle',
    (findObstacle) => (_, unreadable) => findObstacle('whole', unreadable),
  ),
  'a record without a code passed over': declared(
    'sinks/locations',
    'findObstacle',
    (findObstacle) => (extent) => findObstacle(extent, 0),
  ),
  'a wrong record taken off its list': declared(
    'sinks/locations',
    'createPreparer',
    (create) => (target, list, stream) => {
      const own = { ...list, listed: new Map() }
      const prepare = create(target, own, stream)
      return (columns: unknown) => {
        own.listed.clear()
        const prepared = prepare(columns)
        if (E.isRight(prepared)) for (const [key, location] of own.listed) list.listed.set(key, location)
        return prepared
      }
    },
  ),
  'a location of another type deactivated': declared('sinks/ledger', 'planReconcile', (planReconcile) => (...args) => {
    const plan = planReconcile(...args)
    return { ...plan, deactivations: [...plan.deactivations, ...plan.kept] }
  }),
  'a refused location forgotten': declared(
    'sinks/locations',
    'appendOutcomes',
    (appendOutcomes) => (ledger, known, items, answer) => {
      for (const key of known.keys()) known.set(key, 'new')
      return appendOutcomes(ledger, known, items, answer)
    },
  ),
  'an unknown location forgotten': declared(
    'sinks/ledger',
    'decodeLedger',
    (decodeLedger) =>
      (...args) =>
        E.map(
          (active: ReadonlyMap<string, { isUnknown?: true }>) =>
            new Map([...active].filter(([, { isUnknown }]) => isUnknown !== true)),
        )(decodeLedger(...args)),
  ),
  'no limit of deactivations': declared('sinks/ledger', 'checkDeactivations', () => () => E.right(undefined)),
  'locations of others deactivated': declared(
    'sinks/service-list',
    'planDeactivations',
    (plan) => (request) => plan({ ...request, deactivateUnlisted: true }),
  ),
  'a code in another case taken for another': declared(
    'sinks/ledger',
    'foldCode',
    () =>
      ({ code }) =>
        code.trim(),
  ),
  'a location in another case not deactivated': declared(
    'sinks/service-list',
    'planDeactivations',
    (plan) => (request) => plan({ ...request, service: { ...request.service, hasCode: () => false } }),
  ),
  'one page of a list taken for all': declared(
    'api/lookup-list',
    'readLookupList',
    (readLookupList) => (request) => readLookupList({ ...request, isSample: true }),
  ),
  'a changing list read once': declared(
    'api/lookup-list',
    'readOnce',
    (readOnce) =>
      async (...args) =>
        E.map((reading: object) => ({ ...reading, mayLack: false }))(await readOnce(...args)),
  ),
  'the audit of a run in the midst of its streams': declared('streams/sync-audit', 'syncAuditStream', (stream) => ({
    ...stream,
    reader: { ...stream.reader, isLast: undefined },
  })),
  'an older version of a row counted in the audit': declared('streams/version-digest', 'isOutdated', () => () => false),
  'tokens beside the rate': declared(
    'api/http/token',
    'createExchangeTokenSource',
    (create) => (exchange, send, clock, options) =>
      create(exchange, send, clock, { notify: options.notify, onToken: options.onToken }),
  ),
  'the forgotten are read again': declared('snapshot/store/forgotten', 'hasForgotten', () => async () => false),
  'a new file whose folder is not synced': declared('snapshot/store/values', 'flush', (flush) => (path) => {
    if (!statSync(path).isDirectory()) flush(path)
  }),
  'only contents leave with their version': declared(
    'snapshot/load/merge',
    'removeOldChildren',
    (removeOldChildren) => (db, batches, references) =>
      removeOldChildren(
        db,
        batches,
        references.filter(({ table }: Code) => ['reviews', 'review_contents'].includes(table.name)),
      ),
  ),
  'a single row tells the time': declared(
    'reading/clock',
    'cursorSlack',
    (cursorSlack) => (cursor, certain, start) => (certain._tag === 'None' ? 0 : cursorSlack(cursor, certain, start)),
  ),
}

type Loading = {
  require: (this: { readonly filename: string }, name: string) => unknown
  _compile: (code: string, file: string, ...others: unknown[]) => unknown
}

/** Loads the product of this build without one of its safeguards from now on. */
export const injectDefect = (build: string, name: string): void => {
  const defect = defects[name]
  if (defect === undefined)
    throw new Error(`There is no defect "${name}". Choose among ${Object.keys(defects).join(', ')}.`)
  const path = join(build, `${defect.file}.js`)
  const loading = Module.prototype as unknown as Loading
  const { require: requireModule, _compile: compile } = loading
  const replace = (original: unknown) => defect.replace(original, (file) => require(join(build, file)))
  if (defect.isImport) {
    loading.require = function (id) {
      const found = requireModule.call(this, id)
      return this.filename === path && id === defect.name ? replace(found) : found
    }
    return
  }
  Object.assign(globalThis, { replaceDeclared: replace })
  loading._compile = function (code, file, ...others) {
    return compile.call(this, file === path ? makeReplaceable(code, defect.name) : code, file, ...others)
  }
}

/** The code of a file that replaces what it declares under a name, once all of it is loaded. */
const makeReplaceable = (code: string, name: string): string => {
  const isLocal = new RegExp(`^(const|(async )?function\\*?) ${name}\\b`, 'm').test(code)
  const isExported = code.includes(`\nexports.${name} = `)
  if (!isLocal && !isExported) throw new Error(`The build no longer declares ${name} where a defect looks for it.`)
  const local = isLocal ? name : `exports.${name}`
  return [
    code.replace(new RegExp(`^const ${name} = `, 'm'), `let ${name} = `),
    `${local} = replaceDeclared(${local})`,
    ...(isLocal && isExported ? [`exports.${name} = ${name}`] : []),
  ].join(';\n')
}
