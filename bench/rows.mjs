import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { bin } from './bin.mjs'
import { measure } from './measure.mjs'
import { preparePeer } from './prepare-peer.mjs'
import { readJsonFloor, snapshot } from './snapshot.mjs'
import { loadChanges, onFile, sync } from './sync.mjs'
import { postFloor, write } from './writing.mjs'

const here = import.meta.dirname

/** A state for every 1,000 visits, and a few log lines. */
const perThousand = (records) => ({ least: records / 1000, most: records / 1000 + 10 })

const lineEach = (records) => ({ least: records, most: records * 1.02 + 50 })

/** Rows in the file it wrote. */
const rowEach = (records) => ({ least: records, most: records })

/** What a command prints for the user. */
const anyLines = () => ({ least: 0, most: 500 })

const floor = (name, file) => ({
  name,
  lines: file === 'discard.mjs' ? () => ({ least: 0, most: 0 }) : lineEach,
  run: ({ folder, url, pages }) => measure(folder, [join(here, 'floors', file), `${url}/${pages}/0`, String(pages)]),
})

const peer = {
  name: 'read by faros-airbyte-cdk',
  lines: lineEach,
  prepare: preparePeer,
  run: ({ folder, url, pages }) => {
    const [config, catalog] = [join(folder, 'peer.json'), join(folder, 'peer-catalog.json')]
    const stream = { name: 'reviews', json_schema: {}, supported_sync_modes: ['full_refresh'] }
    writeFileSync(config, JSON.stringify({ base_url: `${url}/${pages}/0`, pages }))
    writeFileSync(
      catalog,
      JSON.stringify({ streams: [{ stream, sync_mode: 'full_refresh', destination_sync_mode: 'append' }] }),
    )
    return measure(folder, [join(here, 'peer.mjs'), 'read', '--config', config, '--catalog', catalog])
  },
}

const read = (
  name,
  { select = ['--select', 'reviews'], latency = 0, concurrency, lines = lineEach, attributes } = {},
) => ({
  name,
  lines,
  run: ({ folder, url, pages }) => {
    const [config, catalog] = [join(folder, 'config.json'), join(folder, 'catalog.json')]
    const settings = {
      base_url: `${url}/${pages}/${latency}`,
      credentials: { auth_type: 'access_token', access_token: 'bench' },
      start_date: '2024-01-01T00:00:00Z',
      ...(concurrency === undefined ? {} : { rate_limit: { max_concurrency: concurrency } }),
    }
    writeFileSync(config, JSON.stringify(settings))
    const chosen = JSON.parse(
      execFileSync(process.execPath, [bin('feedback'), 'catalog', '--config', config, ...select]),
    )
    if (attributes !== undefined)
      for (const { stream } of chosen.streams)
        stream.json_schema.properties = Object.fromEntries(
          attributes.map((name) => [name, stream.json_schema.properties[name]]),
        )
    writeFileSync(catalog, JSON.stringify(chosen))
    return measure(folder, [bin('source-feedback'), 'read', '--config', config, '--catalog', catalog])
  },
})

/**
 * What is measured: a program that moves the reviews of the given pages, times `scale`. `lines`: how many lines it must
 * print for the given number of reviews. Rows take turns in every round; one marked `once` runs only in the first.
 */
export const rows = {
  discard: floor('fetch and discard', 'discard.mjs'),
  parse: floor('fetch, parse, print', 'parse.mjs'),
  slice: floor('fetch, slice, print', 'slice.mjs'),
  peer,
  read: read('read'),
  all: read('read, every stream of the export', {
    select: [],
    lines: (records) => ({ least: records * 2, most: Number.POSITIVE_INFINITY }),
  }),
  large: { ...read('read, 10 times the pages'), scale: 10, once: true },
  peerLarge: { ...peer, name: 'read by faros-airbyte-cdk, 10 times the pages', scale: 10, once: true },
  readIds: read('read, ids alone', { attributes: ['id', 'modifiedTime'] }),
  late: { ...read('read, 200 ms a page, one by one', { latency: 200, concurrency: 1 }), once: true },
  late8: { ...read('read, 200 ms a page, 8 at a time', { latency: 200, concurrency: 8 }), once: true },
  post: { name: 'post visits, no connector', lines: perThousand, run: postFloor },
  write: { name: 'write visits', lines: perThousand, run: write },
  readJson: { name: "DuckDB's read_json", lines: rowEach, run: readJsonFloor },
  snapshot: { name: 'snapshot', lines: rowEach, run: snapshot },
  sync: { name: 'sync, reviews', lines: rowEach, run: sync('--select', 'reviews') },
  syncAll: { name: 'sync, every stream', lines: rowEach, run: sync() },
  syncAllLarge: { name: 'sync, every stream, 10 times the pages', lines: rowEach, run: sync(), scale: 10, once: true },
  hashRows: {
    name: "DuckDB's hash of every row",
    lines: anyLines,
    run: onFile((db) => [join(here, 'floors', 'hash-rows.mjs'), db]),
  },
  verify: { name: 'verify', lines: anyLines, run: onFile((db) => [bin('feedback'), 'verify', '--db', db]) },
  verifyService: {
    name: 'verify, against the service',
    lines: anyLines,
    run: onFile((db, _, config) => [bin('feedback'), 'verify', '--db', db, '--config', config]),
  },
  report: {
    name: 'report',
    lines: anyLines,
    run: onFile((db, folder) => [bin('feedback'), 'report', '--db', db, '--out', join(folder, 'report.html')]),
  },
  smallSync: { name: 'load of 100 changed reviews', lines: rowEach, run: loadChanges, scale: 0.1 },
  smallSyncLarge: {
    name: 'load of 100 changed reviews into 100 times as many',
    lines: rowEach,
    run: loadChanges,
    scale: 10,
    once: true,
  },
  writeLarge: { name: 'write visits, 10 times as many', lines: perThousand, run: write, scale: 10, once: true },
}

/**
 * What is compared: a figure, or its ratio to that of the row `to`, after subtracting `less`; its bound, and its value
 * when last measured on a quiet machine (`written`). `work`: records per second of CPU.
 */
export const comparisons = [
  { of: 'read', to: 'peer', figure: 'work', atLeast: 4, written: 3.23 },
  { of: 'large', to: 'peerLarge', figure: 'work', atLeast: 4, written: 4.1 },
  { of: 'read', to: 'parse', figure: 'work', atLeast: 1, written: 2.53 },
  { of: 'read', to: 'slice', figure: 'work', atLeast: 0.75, written: 0.87 },
  { of: 'read', to: 'discard', figure: 'work', written: 0.5 },
  { of: 'all', to: 'read', figure: 'work', atLeast: 0.5, written: 0.38 },
  { of: 'late8', to: 'late', figure: 'rate', atLeast: 6, written: 6.17 },
  { of: 'write', to: 'post', figure: 'work', atLeast: 0.8, written: 0.63 },
  { of: 'writeLarge', to: 'write', figure: 'peak', atMost: 1.1, written: 1.05 },
  { of: 'snapshot', to: 'readJson', figure: 'work', atLeast: 0.75, written: 0.71 },
  { of: 'snapshot', figure: 'peak', atMost: 320, written: 211 },
  { of: 'sync', to: 'readJson', figure: 'work', atLeast: 0.75, written: 0.55 },
  { of: 'syncAll', to: 'readJson', figure: 'work', atLeast: 0.5, written: 0.26 },
  { of: 'syncAll', figure: 'peak', atMost: 320, written: 301 },
  { of: 'syncAllLarge', figure: 'peak', atMost: 320, written: 346 },
  { of: 'smallSyncLarge', to: 'smallSync', figure: 'cpu', atMost: 2, written: 1.71 },
  { of: 'verify', to: 'hashRows', figure: 'seconds', atMost: 3, written: 2.42 },
  { of: 'verifyService', to: 'readIds', figure: 'seconds', atMost: 1.5, written: 1.14 },
  { of: 'verify', figure: 'peak', atMost: 512, written: 200 },
  { of: 'verifyService', figure: 'peak', atMost: 512, written: 289 },
  { of: 'report', figure: 'peak', atMost: 512, written: 341 },
  { of: 'read', figure: 'peak', atMost: 145, written: 121 },
  { of: 'large', to: 'read', figure: 'peak', atMost: 1.1, written: 1.06 },
  { of: 'spec', to: 'node', figure: 'ms', less: 60, atMost: 1.5 },
  { of: 'sandbox', figure: 'ms', atMost: 100 },
]
