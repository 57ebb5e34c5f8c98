import { printJson } from '../api/json-text'
import type { Row } from '../cdk/message'
import { toRow } from './review-item'

type Seen = { readonly time: number; readonly text: string }

/** How many things are remembered; one that is forgotten and met again is sent again. */
const most = 200_000

/**
 * Lets a thing pass the first time it is met, and again only with a later time and another text: never an older version
 * after a newer. `time` in milliseconds; `value` is what is sent, `text` of it what is compared.
 */
export const distinct = () => {
  const seen = new Map<string, Seen>()
  return (key: string, time: number, value: object, compared: object): ReadonlyArray<Row> => {
    const held = seen.get(key)
    if (held !== undefined && held.time >= time) return []
    const text = printJson(compared)
    seen.set(key, { time, text })
    const [oldest] = seen.keys()
    if (seen.size > most && oldest !== undefined) seen.delete(oldest)
    return held?.text === text ? [] : [toRow(value)]
  }
}
