import type { Sink } from '../cdk'
import { locationSink } from './locations'
import type { SinkTarget } from './target'
import { visitRecordSink } from './visit-records'

/** Every object that can be written to; visits refer to locations, which are sent first. */
export const sinks: ReadonlyArray<Sink<SinkTarget>> = [locationSink, visitRecordSink]
