import type { Check } from './check'
import { differenceChecks } from './differences'
import { entityChecks } from './entities'
import { erasedCheck } from './erased'
import { loadChecks } from './loads'
import { relationChecks } from './relations'
import { rowChecks } from './rows'
import { stateChecks } from './states'

/** Every check of `verify`, in reporting order. */
export const checks: ReadonlyArray<Check> = [
  ...loadChecks,
  ...rowChecks,
  ...relationChecks,
  ...entityChecks,
  ...stateChecks,
  erasedCheck,
  ...differenceChecks,
]
