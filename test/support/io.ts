import type { Io } from '../../connector/cdk/cli'

/** What a verb sees of the world, in this process: `print` takes what it says, all else goes nowhere unless `more` takes it. */
export const quietIo = (stdin: Io['stdin'], print: Io['print'], more: Partial<Io> = {}): Io => ({
  env: {},
  pid: 1,
  stdin,
  print,
  warn: () => undefined,
  progress: () => undefined,
  hide: () => undefined,
  clean: (text) => text,
  colours: false,
  stop: new AbortController().signal,
  ...more,
})

/** A text as it comes on stdin. */
export const inputOf = async function* (text: string): AsyncGenerator<Uint8Array> {
  yield new Uint8Array(Buffer.from(text))
}
