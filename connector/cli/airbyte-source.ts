import { createAirbyteSourceCommands } from '../cdk'
import { feedbackSource } from './feedback-source'

/** The commands of source-feedback. */
export const {
  spec: sourceSpecCommand,
  check: sourceCheckCommand,
  discover: sourceDiscoverCommand,
  read: sourceReadCommand,
} = createAirbyteSourceCommands(feedbackSource)
