import type { ScanRules } from './pass'
import type { ScanOrigin } from './state'
import type { ScanFilters } from './window'

/** What a scan is about; the same for all its pages. */
export type ScanContext = {
  readonly operation: string
  readonly hasMentionTime: boolean
  readonly filters: ScanFilters
  readonly from: ScanOrigin
  readonly rules: ScanRules
}
