import { createTapCommand } from '../cdk'
import { feedbackSource } from './feedback-source'

/** The command of tap-feedback. */
export const tapCommand = createTapCommand(feedbackSource)
