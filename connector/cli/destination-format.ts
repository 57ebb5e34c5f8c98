import type { ConfigFormat } from '../cdk'
import { createDestinationFormat, type DestinationConfig } from '../config'
import { locationSink, visitRecordSink } from '../sinks'

/** The format of the destination's configuration, whose mapping has a key for each attribute of the sinks. */
export const destinationFormat: ConfigFormat<DestinationConfig> = createDestinationFormat({
  visit_records: visitRecordSink.schema,
  locations: locationSink.schema,
})
