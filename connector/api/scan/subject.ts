import type { Rules } from './pass'
import type { From } from './state'
import type { Filters } from './window'

/** What a scan is about; the same for all its pages. */
export type Subject = {
  readonly operation: string
  readonly hasMentionTime: boolean
  readonly filters: Filters
  readonly from: From
  readonly rules: Rules
}
