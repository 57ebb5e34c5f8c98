import type { Sink } from '../cdk/sink'
import { locations } from './locations'
import type { Target } from './target'
import { visitRecords } from './visit-records'

/** Every object that can be written to; visits refer to locations, which are sent first. */
export const sinks: ReadonlyArray<Sink<Target>> = [locations, visitRecords]
