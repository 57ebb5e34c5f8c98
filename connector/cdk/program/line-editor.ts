import { createInterface } from 'node:readline'

/** Lines that a person types and edits on a terminal. The arrow keys recall earlier lines of this session. */
export type LineEditor = {
  /** The next line; 'interrupted' after Ctrl-C, 'ended' after Ctrl-D. */
  readonly readLine: (prompt: string) => Promise<{ readonly line: string } | 'interrupted' | 'ended'>
  /** Runs work that Ctrl-C stops without ending the program. */
  readonly runUntilInterrupt: <A>(work: (interrupt: AbortSignal) => Promise<A>) => Promise<A>
  readonly close: () => void
}

/** `flush`: resolves once everything printed before a prompt is written. */
export const createLineEditor = (
  input: NodeJS.ReadableStream,
  output: NodeJS.WritableStream,
  flush: () => Promise<void>,
): LineEditor => {
  const editor = createInterface({ input, output, terminal: true, historySize: 1_000, removeHistoryDuplicates: true })
  const events: Array<Awaited<ReturnType<LineEditor['readLine']>>> = []
  let wake = (): void => undefined
  let interrupt: AbortController | undefined
  const push = (event: (typeof events)[number]): void => {
    events.push(event)
    wake()
  }
  editor.on('line', (line) => push({ line }))
  editor.on('close', () => push('ended'))
  editor.on('SIGINT', () => {
    if (interrupt !== undefined) return interrupt.abort()
    output.write('^C\n')
    // The cursor may be inside the line: go to its end and clear it, without another prompt.
    editor.setPrompt('')
    for (const name of ['e', 'u']) editor.write(null, { ctrl: true, name })
    push('interrupted')
  })
  return {
    readLine: async (prompt) => {
      await flush()
      if (events.length === 0) {
        editor.setPrompt(prompt)
        editor.prompt(true)
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
      return events.shift() ?? 'ended'
    },
    runUntilInterrupt: async (work) => {
      interrupt = new AbortController()
      return work(interrupt.signal).finally(() => {
        interrupt = undefined
      })
    },
    close: () => editor.close(),
  }
}
