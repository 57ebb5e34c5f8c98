import type { Sink } from '../cdk'
import { locationSink } from './locations'
import type { SinkTarget } from './target'
import { visitRecordSink } from './visit-records'

/** Every object that can be written to. Locations come first, since visits refer to them. */
export const sinks: ReadonlyArray<Sink<SinkTarget>> = [locationSink, visitRecordSink]
