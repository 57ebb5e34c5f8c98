import type { Row } from './consumer'
import type { Violation } from './oracles'
import type { ExportRow } from './rows'

/** The streams that are made of parts of reviews. */
export const partStreams = ['review_contents', 'locations'] as const

/** The tables of parts, as a loader holds them that keeps the newest row of each key. */
export type PartTables = {
  readonly keep: (row: Row) => void
  /** What differs from the reviews that the service holds. */
  readonly compare: (reviews: ReadonlyArray<ExportRow>) => ReadonlyArray<Violation>
}

type Part = { readonly time: number; readonly text: string }

type ReviewBody = {
  readonly location: { readonly id: number; readonly name: string }
  readonly contents: ReadonlyArray<{ readonly id: number; readonly response: string }>
}

export const createPartTables = (): PartTables => {
  const tables = new Map<string, Map<string, Part>>(partStreams.map((stream) => [stream, new Map()]))
  const compare: PartTables['compare'] = (reviews) => {
    const violations: Violation[] = []
    const contents = tables.get('review_contents') ?? new Map<string, Part>()
    const wanted = new Map<string, Part>()
    const names = new Map<string, Part>()
    for (const { id, modified, text } of reviews) {
      const body = JSON.parse(text) as ReviewBody
      for (const content of body.contents) wanted.set(`${id} ${content.id}`, { time: modified, text: content.response })
      const location = String(body.location.id)
      if ((names.get(location)?.time ?? 0) <= modified)
        names.set(location, { time: modified, text: body.location.name })
    }
    const check = (stream: string, key: string, part: Part, held: Part | undefined, isRight: boolean): void => {
      const what = `${stream} ${key}: ${JSON.stringify(held)} in place of ${JSON.stringify(part)}`
      if (!isRight) violations.push({ oracle: held === undefined ? 'nothing lost' : 'nothing stale', what })
    }
    for (const [key, part] of wanted) {
      const held = contents.get(key)
      check('review_contents', key, part, held, held?.time === part.time && held.text === part.text)
    }
    const versions = new Map(reviews.map(({ id, modified }) => [String(id), modified]))
    // Loaders keep the parts of older versions.
    for (const [key, { time }] of contents)
      if (versions.get(key.split(' ')[0] ?? '') === time && !wanted.has(key))
        violations.push({ oracle: 'nothing beyond', what: `review_contents ${key}` })
    for (const [key, part] of names) {
      const held = tables.get('locations')?.get(key)
      // A review that named it later has changed or was deleted since; a name that stays is not sent again.
      check('locations', key, part, held, held !== undefined && (held.time > part.time || held.text === part.text))
    }
    return violations.slice(0, 5)
  }
  return {
    keep: ({ stream, data }) => {
      const isContent = stream === 'review_contents'
      const key = isContent ? `${data.reviewId} ${data.id}` : String(data.id)
      const time = Date.parse(String(data.reviewModifiedTime))
      const table = tables.get(stream)
      if (time >= (table?.get(key)?.time ?? 0))
        table?.set(key, { time, text: String(isContent ? data.response : data.name) })
    },
    compare,
  }
}
