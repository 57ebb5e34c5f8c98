import type { CommandIo } from '../../connector/cdk/program/command'

/**
 * The io of a command in this process: `print` receives its output; everything else is dropped unless `more` overrides
 * it.
 */
export const createTestIo = (
  stdin: CommandIo['stdin'],
  print: CommandIo['print'],
  more: Partial<CommandIo> = {},
): CommandIo => ({
  env: {},
  pid: 1,
  stdin,
  print,
  printWarning: () => undefined,
  printProgress: () => undefined,
  isInteractive: false,
  printsOnTerminal: false,
  hasColors: false,
  setEcho: () => undefined,
  editLines: () => {
    throw new Error('This test has no terminal.')
  },
  addSecrets: () => undefined,
  redactText: (text) => text,
  stop: new AbortController().signal,
  ...more,
})

/** A text as it comes on stdin. */
export const toInput = async function* (text: string): AsyncGenerator<Uint8Array> {
  yield new Uint8Array(Buffer.from(text))
}
