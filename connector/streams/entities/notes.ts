import type { Reading } from '../../cdk/stream'

/** Something that somebody should know, though the run goes on. */
export const warn = (message: string): Reading => ({ _tag: 'Note', level: 'warn', message })
