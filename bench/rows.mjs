import { join } from 'node:path'
import { measure } from './measure.mjs'

const here = import.meta.dirname
const connector = join(here, '..', 'build', 'bin', 'source-feedback.js')

const floor = (name, file) => ({
  name,
  scale: 1,
  prints: file !== 'discard.mjs',
  run: ({ folder, url, pages }) => measure(folder, [join(here, 'floors', file), `${url}/${pages}/0`, String(pages)]),
})

const read = (name, scale) => ({
  name,
  scale,
  prints: true,
  run: ({ folder, input, url, pages }) => {
    const config = input('config.json', {
      base_url: `${url}/${pages}/0`,
      credentials: { auth_type: 'access_token', access_token: 'bench' },
      start_date: '2024-01-01T00:00:00Z',
    })
    const catalog = input('catalog.json', { streams: [reviews] })
    return measure(folder, [connector, 'read', '--config', config, '--catalog', catalog])
  },
})

const reviews = {
  stream: { name: 'reviews', json_schema: { type: 'object' }, supported_sync_modes: ['full_refresh', 'incremental'] },
  sync_mode: 'incremental',
  destination_sync_mode: 'append_dedup',
  cursor_field: ['modifiedTime'],
  primary_key: [['id']],
}

/** What is measured: a program over `scale` times the pages; rows that repeat run once in every round. */
export const rows = {
  discard: floor('fetch and discard', 'discard.mjs'),
  parse: floor('fetch, parse, print', 'parse.mjs'),
  slice: floor('fetch, slice, print', 'slice.mjs'),
  read: read('read', 1),
  large: { ...read('read, 10 times the pages', 10), once: true },
}

/** What is compared: a figure, as a ratio to another row's where `to` is given, after taking off `less`; and where it should lie. */
export const comparisons = [
  { of: 'read', to: 'parse', figure: 'rate', atLeast: 1 },
  { of: 'read', to: 'slice', figure: 'rate', atLeast: 0.75 },
  { of: 'read', to: 'discard', figure: 'rate' },
  { of: 'read', figure: 'peak', atMost: 150 },
  { of: 'large', to: 'read', figure: 'peak', atMost: 1.1 },
  { of: 'spec', to: 'node', figure: 'ms', less: 60, atMost: 1.5 },
  { of: 'sandbox', figure: 'ms', atMost: 100 },
]
