import { readObjectMembers, stringAt } from '../cdk/json-span'
import { splitLines } from '../cdk/lines-of'
import type { Row } from '../cdk/message'
import type { ExpectedStreams } from './configured-catalog'
import { createAirbyteLineDecoder } from './incoming-airbyte'
import { type DecodedMessage, type LineDecoder, type LoadMessage, warningMessage } from './incoming-line'
import { createSingerLineDecoder } from './incoming-singer'

export type DecodeInputOptions = {
  /** The run's configured catalog, before any that the input holds; Singer needs none. */
  readonly expected?: ExpectedStreams | undefined
  /** What is known without a catalog. */
  readonly own?: ExpectedStreams
  /** Milliseconds since 1970. */
  readonly now: () => number
}

/** Lines of the Airbyte or the Singer protocol as the messages they were made from. A line that is not JSON is passed over with a warning. */
export async function* decodeInput(
  input: AsyncIterable<Uint8Array>,
  { expected, own = new Map(), now }: DecodeInputOptions,
): AsyncIterable<LoadMessage> {
  let protocol: LineDecoder | undefined
  let count = 0
  for await (const lines of splitLines(input)) {
    const said: Array<DecodedMessage> = []
    for (const bytes of lines) {
      count += 1
      if (bytes.length === 0) continue
      const members = readObjectMembers(bytes, 'record')
      const type = members && stringAt(bytes, members.get('type'))
      if (members === undefined || type === undefined) {
        said.push(warningMessage(`Line ${count} of the input is no message and is passed over.`))
        continue
      }
      protocol ??=
        type === 'SCHEMA' || members.has('value')
          ? createSingerLineDecoder(now)
          : createAirbyteLineDecoder(expected, own)
      said.push(...(protocol.decoders[type]?.({ bytes, members }) ?? []))
    }
    yield* groupRecords(said)
  }
  yield* groupRecords(protocol?.end() ?? [])
}

/** Records of one stream and time that follow one another become one message. */
function* groupRecords(said: ReadonlyArray<DecodedMessage>): Iterable<LoadMessage> {
  let rows: Array<Row> = []
  let last: { readonly stream: string; readonly at: number } | undefined
  for (const one of said) {
    const goesOn = one._tag === 'Record' && one.stream === last?.stream && one.at === last.at
    if (!goesOn && last !== undefined) {
      yield { _tag: 'Records', ...last, rows }
      rows = []
      last = undefined
    }
    if (one._tag === 'Record') {
      const { stream, at, json, changes } = one
      rows.push(changes === undefined ? { json } : { json, changes })
      last = { stream, at }
    } else yield one
  }
  if (last !== undefined) yield { _tag: 'Records', ...last, rows }
}
