import { defineCommand, usageError } from '../cdk'
import { compactLake, type KeptVersions } from '../lake'
import { compactSnapshot, isLakePath } from '../snapshot'
import { placeOptions, requirePlace, verbUsageError } from './options'
import { toSnapshotOptions } from './snapshot-file'
import { formatJson } from './table'

const formatSize = (bytes: number): string => `${(bytes / 1e6).toLocaleString('en', { maximumFractionDigits: 1 })} MB`
const describeSizes = (path: string, before: number, after: number): string => {
  return after < before
    ? `${path}: ${formatSize(before)}, now ${formatSize(after)}\n`
    : `${path} has no free space to release: ${formatSize(before)}. It was not changed.\n`
}

const toKeptVersions = (text = 'newest'): KeptVersions => {
  if (text === 'newest' || text === 'all') return text
  const [, days] = /^(\d{1,5})d$/.exec(text) ?? []
  if (days === undefined)
    throw usageError(
      `--keep must be newest, all or a number of days such as 30d, not ${text}. See feedback compact --help.`,
    )
  return { days: Number(days) }
}

export const compactCommand = defineCommand({
  name: 'compact',
  summary: 'Rewrites a snapshot or a lake to free disk space.',
  options: {
    ...placeOptions,
    keep: {
      type: 'string',
      value: 'VERSIONS',
      help:
        'With --lake: which versions of rows stay: newest, all, or 30d for those of the last 30 days; newest if ' +
        'left out',
    },
    json: { type: 'boolean', help: 'Print the sizes as JSON' },
  },
  examples: [
    'feedback compact --db reviews.duckdb',
    'feedback compact --lake ducklake:postgres:dbname=lake --keep 30d',
  ],
  notes:
    'The new file is compared with the old one, table by table, and then replaces it; until then ' +
    'it needs space on the same disk. In a lake, old versions of rows are removed and small files ' +
    'joined; no run may write in the meantime. AT (VERSION => …) then reaches back only to this point. ' +
    'Exit status: 0, 75 another process uses the file or the lake, or the disk is full, 78 it cannot ' +
    'be read or replaced.',
  run: async (io, { options }) => {
    const place = requirePlace('feedback compact', options)
    const opening = toSnapshotOptions(io, options)
    if (isLakePath(place)) {
      const compaction = await compactLake(place, toKeptVersions(options.keep), opening)
      const { removed_versions: removed, before, after } = compaction
      const text =
        `${removed.toLocaleString('en')} versions of rows removed; ${before.files} files of ` +
        `${formatSize(before.bytes)}, now ${after.files} of ${formatSize(after.bytes)}\n`
      await io.print(options.json ? formatJson(compaction) : text)
      return 0
    }
    if (options.keep !== undefined) throw verbUsageError('feedback compact', ': --keep needs --lake.')
    const { before, after } = await compactSnapshot(place, opening)
    await io.print(options.json ? formatJson({ before, after }) : describeSizes(place, before, after))
    return 0
  },
})
