import { readFileSync } from 'node:fs'
import Module from 'node:module'
import { join } from 'node:path'

/** A safeguard of the product and how to remove it from a built file: `find` must be there once. */
type Defect = { readonly file: string; readonly find: string; readonly replace: string }

/** Each safeguard whose loss the simulation has to notice, by name. */
export const defects: Readonly<Record<string, Defect>> = {
  'rows in another order accepted': {
    file: 'reading/pages.js',
    find: 'if (order.problem !== undefined || !isJoined)',
    replace: 'if (!isJoined)',
  },
  'moved rows not explained': {
    file: 'reading/pages.js',
    find: 'if (progress.inserted > 0 &&',
    replace: 'if (false &&',
  },
  'windows not counted': {
    file: 'reading/windows.js',
    find: 'const isCounted = async (session, windows, isAgain = false) => {',
    replace: 'const isCounted = async (session, windows, isAgain = false) => { return true;',
  },
  'pages that need not join': {
    file: 'reading/pages.js',
    find: 'const isJoined = rows.length > 0 && (',
    replace: 'const isJoined = rows.length > 0 && (true || ',
  },
  'no slack': {
    file: 'reading/clock.js',
    find: '? Math.max(0, cursor.value - O.getOrElse(() => startDate)(certain)) : 0',
    replace: '? 0 : 0',
  },
  'a token used until it is refused': {
    file: 'api/http/token.js',
    find: 'clock.ticks() - issuedAt < lifetime - reserve(lifetime)',
    replace: 'true',
  },
  'no new token after a refusal': {
    file: 'api/http/token.js',
    find: 'if (age < minAge)',
    replace: 'if (true)',
  },
  'no lookback': {
    file: 'reading/clock.js',
    find: 'cursor.value - lookback)',
    replace: 'cursor.value)',
  },
  'the latest cursor for all streams of a read': {
    file: 'streams/export-reader.js',
    find: 'Math.min(a.value, b.value)',
    replace: 'Math.max(a.value, b.value)',
  },
  'sent rows forgotten': {
    file: 'streams/export-state.js',
    find: '...(sentRows.length === 0 ? {} : { recent: sentRows }),',
    replace: '',
  },
  'state before rows': {
    file: 'streams/export-reader.js',
    find:
      '        yield* rowEvents(streamsRead.filter(({ request }) => !request.derives), ' +
      'item.rows, toItem);\n        if (completion !== undefined)\n            return yield* ' +
      'endEvents(endOf(completion, streamsRead));\n        for (const stream of streamsRead)\n  ' +
      '          yield toOpenCheckpoint(source, digest, stream, item.resumeToken);',
    replace:
      '            return yield* endEvents(endOf(completion, streamsRead));\n        for (const stream of ' +
      'streamsRead)\n            yield toOpenCheckpoint(source, digest, stream, item.resumeToken);\n      ' +
      '  yield* rowEvents(streamsRead.filter(({ request }) => !request.derives), item.rows, toItem);',
  },
  'rate too high': {
    file: 'api/http/rate-limit.js',
    find: 'Math.ceil(61_000 / perMinute)',
    replace: 'Math.ceil(50_000 / perMinute)',
  },
  'Retry-After for the refused request alone': {
    file: 'api/http/rate-limit.js',
    find: 'pausedUntil = Math.max(pausedUntil, clock.ticks() + pause);',
    replace: ';',
  },
  'Retry-After ignored': {
    file: 'api/http/retry-after.js',
    find: "headers['retry-after'] ?? ''",
    replace: "''",
  },
  'secrets in errors': {
    file: 'api/http/send.js',
    find: 'const text = [status.message, status.code]',
    replace: 'return String(status.message); const text = [status.message, status.code]',
  },
  'no response time-out': {
    file: 'api/http/transport.js',
    find: 'const timer = setTimeout(abort, options.responseSeconds * 1000);',
    replace: 'const timer = undefined;',
  },
  'a partial write taken for whole': {
    file: 'cdk/program/stdout.js',
    find: 'block.from += written;',
    replace: 'block.from = block.to;',
  },
  'no wait for the reader of stdout': {
    file: 'cdk/program/stdout.js',
    find: 'if (output.waitingBytes < below)',
    replace: 'if (below > 1 || output.waitingBytes < below)',
  },
  'pages asked for ahead without bound': {
    file: 'reading/pages.js',
    find: 'Array.from({ length: concurrency }, (_, i)',
    replace: 'Array.from({ length: 40 }, (_, i)',
  },
  'state before its visits': {
    file: 'cdk/write/acknowledge.js',
    find: "else if (entry.status._tag === 'Pending')",
    replace: 'else if (false)',
  },
  'state before its dead letters': {
    file: 'cdk/write/acknowledge.js',
    find: 'TE.tryCatch(() => deadLetters.flush(), toDeadLetterError)',
    replace: 'TE.tryCatch(async () => undefined, toDeadLetterError)',
  },
  'dead letters not synced': {
    file: 'cdk/write/dead-letters.js',
    find: 'await file.sync();',
    replace: '{}',
  },
  'the name of the dead letters not synced': {
    file: 'cdk/write/dead-letters.js',
    find: 'await (0, exports.syncFolder)(path);',
    replace: '{}',
  },
  'other visit ids in each run': {
    file: 'sinks/visit-records.js',
    find: 'hashValue([origin, values])',
    replace: 'hashValue([origin, values, Date.now()])',
  },
  'records of one location at the same time': {
    file: 'cdk/write/batch.js',
    find: 'full || keysInFlight.has(item.key) || keys.has(item.key)',
    replace: 'full',
  },
  'visits before their locations': {
    file: 'cdk/write/batch.js',
    find: 'return busy.length === 0;',
    replace: 'return true;',
  },
  'reading without end': {
    file: 'cdk/write/write.js',
    find: 'count >= run.batch.count * (run.inFlight + readAheadLimit.batches) || ',
    replace: '',
  },
  'an unnamed visit taken for accepted': {
    file: 'sinks/visit-records.js',
    find: 'return unknownVerdict;',
    replace: 'return acceptedVerdict;',
  },
  'a lost record unnoticed': {
    file: 'cdk/airbyte/decode.js',
    find: 'if (problem !== undefined && !isCountedByPlatform)\n        return losses.reportLoss(line, problem);',
    replace: '',
  },
  'a cut input taken for whole': {
    file: 'cdk/write/sink-routes.js',
    find: 'return ending === undefined && needsEnding',
    replace: 'return ending === undefined && false',
  },
  'state before the rows of its commit': {
    file: 'snapshot/load/commit.js',
    find: 'const undeclared = await (0, exports.findNewColumns)(db, received);',
    replace:
      'for (const { load, state } of changes) if (state !== undefined) for (const sql of (0, ' +
      'earlier_runs_1.saveLoadStatesSql)(load, [{ stream: load.stream, state }], now)) await ' +
      'db.run(sql); const undeclared = await (0, exports.findNewColumns)(db, received);',
  },
  'state with the first part of a commit': {
    file: 'snapshot/load/slices.js',
    find: "    state: undefined,\n    status: 'running',\n    activatesGeneration: false,\n});",
    replace: "    status: 'running',\n    activatesGeneration: false,\n});",
  },
  'a deleted review comes back': {
    file: 'snapshot/load/commit.js',
    find:
      '    await (0, merge_1.applyKnownDeletions)(db, [...reviewBatches, ' +
      '...results.map(({ batch }) => batch)], references);\n',
    replace: '',
  },
  'old contents stay': {
    file: 'snapshot/load/commit.js',
    find: '    await (0, merge_1.removeOldChildren)(db, [...reviewBatches, ...withOthers], references);\n',
    replace: '',
  },
  'a half-made file is refused': {
    file: 'snapshot/store/file.js',
    find: '!isUnfinished(path)',
    replace: 'true',
  },
  'comments of the last month not read again': {
    file: 'streams/entities/stream.js',
    find: 'Math.max(minLookback, source.feedback.lookbackDays * day)',
    replace: '0',
  },
  'no second look at a first page': {
    file: 'streams/entities/groups.js',
    find: 'return mayHaveMoved && ',
    replace: 'return false && ',
  },
  'the first name of a location kept': {
    file: 'streams/review-dimensions.js',
    find: 'last !== undefined && last.time >= time',
    replace: 'last !== undefined',
  },
  'one round where no filter cuts the list': {
    file: 'reading/rounds.js',
    find: 'const quietRounds = 3;',
    replace: 'const quietRounds = 0;',
  },
  'reviews without a mention time not looked for': {
    file: 'reading/read.js',
    find: '[{ unmentioned: true, rows: 0 }]',
    replace: '[]',
  },
  'no end probe': {
    file: 'reading/pages.js',
    find: "if (found._tag === 'End')",
    replace: 'if (true)',
  },
  'an empty answer taken for the end': {
    file: 'reading/pages.js',
    find: "if (found._tag === 'Nothing')",
    replace: "if (found._tag === 'Nothing') break; if (false)",
  },
  'one row sets the certain time': {
    file: 'reading/clock.js',
    find: 'second = Math.max(second, Math.min(newest, modifiedTime));',
    replace: 'second = Math.max(second, modifiedTime);',
  },
  'a refused offset fails the read': {
    file: 'export/list.js',
    find: 'offset === 0 || !mayRefuseOffset(answer.left)',
    replace: 'true',
  },
  'no second scan': {
    file: 'streams/export-reader.js',
    find: 'isResumed || again !== undefined)',
    replace: 'again !== undefined)',
  },
  'an echo unchecked': {
    file: 'export/fetch-page.js',
    find: 'if (error !== undefined)',
    replace: 'if (false)',
  },
  'a location sent before its ledger has it': {
    file: 'sinks/locations.js',
    find: 'added.length === 0 ? TE.right(undefined)',
    replace: 'true ? TE.right(undefined)',
  },
  'a ledger not synced': {
    file: 'sinks/ledger.js',
    find: "entries.map(formatLine).join(''), { flush: true })",
    replace: "entries.map(formatLine).join(''))",
  },
  'the name of a ledger not synced': {
    file: 'sinks/ledger.js',
    find: 'await (0, cdk_1.syncFolder)(path);',
    replace: '',
  },
  'a ledger rewritten in its place': {
    file: 'sinks/ledger.js',
    find: 'await (0, promises_1.rename)(',
    replace:
      'await (0, promises_1.writeFile)(path, [formatLine({ base_url: baseUrl }), ' +
      "...lines].join(''), { flush: true }); if (false) await (0, promises_1.rename)(",
  },
  'an entry behind one that was cut': {
    file: 'sinks/ledger.js',
    find: 'last = last.then(',
    replace: 'last = last.catch(() => undefined).then(',
  },
  'a part of a list taken for whole': {
    file: 'sinks/locations.js',
    find: 'const obstacle = findObstacle(extent, list.unreadable);',
    replace: "const obstacle = findObstacle('whole', list.unreadable);",
  },
  'a record without a code passed over': {
    file: 'sinks/locations.js',
    find: 'return unreadable === 0',
    replace: 'return true',
  },
  'a wrong record taken off its list': {
    file: 'sinks/locations.js',
    find: 'addKeyToList(columns);',
    replace: ';',
  },
  'a location of another type deactivated': {
    file: 'sinks/ledger.js',
    find: 'deactivations: missing.filter((location) => !listedCodes.has((0, exports.foldCode)(location))),',
    replace: 'deactivations: missing,',
  },
  'a refused location forgotten': {
    file: 'sinks/locations.js',
    find: "isRejected && known.get(key) === 'new'",
    replace: 'isRejected',
  },
  'an unknown location forgotten': {
    file: 'sinks/ledger.js',
    find: 'const lines = [...active.values()].map(',
    replace: 'const lines = [...active.values()].filter(exports.isCertain).map(',
  },
  'no limit of deactivations': {
    file: 'sinks/ledger.js',
    find: 'missingCount * 100 <= maxPercent * activeCount',
    replace: 'true',
  },
  'locations of others deactivated': {
    file: 'sinks/service-list.js',
    find: 'deactivateUnlisted || isWritten(location)',
    replace: 'true',
  },
  'a code in another case taken for another': {
    file: 'sinks/ledger.js',
    find: 'code.trim().toLowerCase()',
    replace: 'code.trim()',
  },
  'a location in another case not deactivated': {
    file: 'sinks/service-list.js',
    find: ', ...misspelt]',
    replace: ']',
  },
  'one page of a list taken for all': {
    file: 'api/lookup-list.js',
    find: 'paging === undefined || request.isSample === true',
    replace: 'true',
  },
  'a changing list read once': {
    file: 'api/lookup-list.js',
    find: 'previous?.keys().every(set.has) ?? !mayLack',
    replace: 'true',
  },
  'the audit of a run in the midst of its streams': {
    file: 'streams/sync-audit.js',
    find: 'isLast: true,',
    replace: '',
  },
  'an older version of a row counted in the audit': {
    file: 'streams/version-digest.js',
    find: '(!last.isOnly && isOutdated(stream, id, version))',
    replace: 'false',
  },
  'tokens beside the rate': {
    file: 'api/http/client.js',
    find: 'waitForTurn: throttle.run,',
    replace: '',
  },
  'the forgotten are read again': {
    file: 'snapshot/load/writer.js',
    find: 'const forgets = await (0, forgotten_1.hasForgotten)(db);',
    replace: 'const forgets = false;',
  },
  'a new file whose folder is not synced': {
    file: 'snapshot/store/values.js',
    find: 'flush((0, node_path_1.dirname)(to));',
    replace: '',
  },
  'only contents leave with their version': {
    file: 'snapshot/load/merge.js',
    find: 'for (const child of children)\n        await db.run(',
    replace:
      "for (const child of children)\n        if (child.table.name === 'review_contents')\n            await db.run(",
  },
  'a single row tells the time': {
    file: 'reading/clock.js',
    find: 'O.getOrElse(() => startDate)(certain)',
    replace: 'O.getOrElse(() => cursor.value)(certain)',
  },
}

/** Loads the product without this safeguard from now on. */
export const injectDefect = (build: string, name: string): void => {
  const defect = defects[name]
  if (defect === undefined)
    throw new Error(`There is no defect "${name}". Choose among ${Object.keys(defects).join(', ')}.`)
  const path = join(build, defect.file)
  const source = readFileSync(path, 'utf8')
  if (source.split(defect.find).length !== 2) throw new Error(`${defect.file} does not have this once: ${defect.find}`)
  const prototype = Module.prototype as unknown as { _compile: (code: string, file: string) => unknown }
  const compile = prototype._compile
  prototype._compile = function (code, file) {
    return compile.call(this, file === path ? source.replace(defect.find, () => defect.replace) : code, file)
  }
}
