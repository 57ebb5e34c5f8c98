import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { RunOutput } from './consumer'
import { createFeed, type Entry, type FeedStream, feedStreams } from './feed'
import type { SimulatedDisk } from './file-disk'
import { createInput } from './input'
import { createLineReader, parseLine } from './lines'
import type { Violation } from './oracles'
import { createListWatch, type ListWatch } from './place-list'
import type { Platform, RunEnd } from './platform'
import type { Chance } from './random'
import type { Realm } from './realm'
import { ledgerFile, letterFile, mustWriteAll, type WritingScenario } from './scenario-writing'
import { createWrittenService, type WrittenService } from './service-writing'

const objects: Readonly<Record<FeedStream, string>> = { visits: 'visit_records', places: 'locations' }

/** A state that a run is fed with, and the records since the state before it of the same scope. */
type SentState = {
  /** The line, or for Singer its value, which must come back unchanged. */
  readonly text: string
  readonly streams: ReadonlyArray<FeedStream>
  readonly positions: Readonly<Record<FeedStream, number>>
  readonly entries: ReadonlyArray<Entry>
}
type FedLine = { readonly text: string; readonly entry?: Entry; readonly state?: SentState }

/** What the rejected records of a world may leave behind. */
type DeadLetters = { readonly marks: ReadonlySet<string>; readonly reasons: ReadonlyArray<string> }

/** The lines of a dead-letter file that are whole. */
const parseLetters = (text: string): DeadLetters => {
  const letters = text.split('\n').flatMap((line) => {
    try {
      const { reason, record } = JSON.parse(line)
      return [{ reason: String(reason), mark: String(record.row) }]
    } catch {
      return []
    }
  })
  return { marks: new Set(letters.map(({ mark }) => mark)), reasons: letters.map(({ reason }) => reason) }
}

const statsPattern = /,"destinationStats":\{"recordCount":([\d.]+),"rejectedRecordCount":([\d.]+)\}/

/** A platform with a destination: feeds it, keeps the states that come back, and sends everything after them again. */
export const createDestinationPlatform = (
  scenario: WritingScenario,
  protocol: 'airbyte' | 'singer',
  { realm, chance, disk }: { readonly realm: Realm; readonly chance: Chance; readonly disk: SimulatedDisk },
  report: (oracle: string, what: string) => void,
): Platform => {
  const { writing } = scenario
  const words: string[] = []
  const drawing = chance.split('feed')
  const feed = createFeed(writing.feed, realm.wall, drawing, words)
  /** The codes of the locations that were dropped on their way to the connector. */
  const lostCodes = new Set<string>()
  const { reconcile } = writing
  disk.reset(
    [...(reconcile?.hasLedger ? [ledgerFile] : []), ...(writing.hasLetterDisk ? [letterFile] : [])],
    chance.split('disk'),
  )
  const readLetters = (): DeadLetters => {
    if (writing.hasLetterDisk) return parseLetters(disk.read(letterFile) ?? '')
    return parseLetters(existsSync(letterFile) ? readFileSync(letterFile, 'utf8') : '')
  }
  /** The letters that a power failure would leave, unless the disk lies. */
  const readSafeLetters = (): DeadLetters =>
    writing.hasLetterDisk && !disk.isLying() ? parseLetters(disk.readSynced(letterFile) ?? '') : readLetters()
  const list: ListWatch = createListWatch(scenario, disk, feed, () => service, report)
  const service: WrittenService = createWrittenService(
    scenario.service,
    writing.service,
    realm.wall,
    chance.split('service'),
    words,
    {
      onUnknownCode: (code, visit) => {
        if (lostCodes.has(code) || !list.isListed(code, visit)) return
        const isHere = feed.entries.some(
          (entry) => entry.code === code && isGood(entry) && service.isRefused(entry.key),
        )
        if (!isHere) report('locations first', `a visit to ${code} was sent before its location`)
      },
      onDeactivation: list.onDeactivation,
    },
  )
  /** The positions of the last states that came back. */
  let reached: Readonly<Record<FeedStream, number>> = { visits: 0, places: 0 }
  let states = 0
  rmSync(letterFile, { force: true })

  const isGood = ({ fate }: Entry): boolean => fate === 'good'
  const isApplied = (entry: Entry): boolean => {
    if (entry.stream === 'visits') return service.hasVisit(entry.key)
    const { position, isActive } = service.findLocation(entry.code) ?? { position: 0, isActive: false }
    return isGood(entry) && (position > entry.position || (position === entry.position && isActive === entry.isActive))
  }

  const formatRecord = ({ stream, record }: Entry): string => {
    const data = { ...record, _sdc_received_at: new Date(realm.wall()).toISOString() }
    return JSON.stringify(
      protocol === 'airbyte'
        ? { type: 'RECORD', record: { stream, data, emitted_at: realm.wall() } }
        : { type: 'RECORD', stream, record: data },
    )
  }
  const formatState = (
    streams: ReadonlyArray<FeedStream>,
    positions: SentState['positions'],
    entries: ReadonlyArray<Entry>,
  ): string => {
    states += 1
    // A number that no double holds, and spaces that no writer would set.
    const cursor = (of: object): string =>
      `{ "n": ${states}, "at":12345678901234567890.10, "positions": ${JSON.stringify(of)} }`
    if (protocol === 'singer') return cursor(positions)
    const stats = `"sourceStats":{"recordCount":${entries.length.toFixed(1)}}`
    const describe = (name: FeedStream): string =>
      `{"stream_descriptor":{"name":"${name}"},"stream_state":${cursor({ [name]: positions[name] })}}`
    if (streams.length === 1)
      return `{"type":"STATE","state":{"type":"STREAM","stream":${describe(streams[0] ?? 'visits')},${stats}}}`
    return writing.states === 'global'
      ? `{"type":"STATE","state":{"type":"GLOBAL","global":{"stream_states":[${feedStreams.map(describe)}]},${stats}}}`
      : `{"type":"STATE","state":{"type":"LEGACY","data":${cursor(positions)}}}`
  }
  const frame = (stream: FeedStream, status: string): string =>
    protocol === 'airbyte'
      ? `{"type":"TRACE","trace":{"type":"STREAM_STATUS","emitted_at":1.0,` +
        `"stream_status":{"stream_descriptor":{"name":"${stream}"},"status":"${status}"}}}`
      : JSON.stringify({
          type: 'SCHEMA',
          stream,
          schema: {},
          key_properties: keyOf(stream),
          ...(isWholeList(stream) ? {} : { bookmark_properties: ['row'] }),
        })
  const isWholeList = (stream: FeedStream): boolean => stream === 'places' && reconcile !== undefined
  const keyOf = (stream: FeedStream): ReadonlyArray<string> =>
    writing.hasKeys ? [stream === 'visits' ? 'id' : 'code'] : []

  /** What a run sends: all after the last states that came back. */
  const drawLines = (entries: ReadonlyArray<Entry>): ReadonlyArray<FedLine> => {
    const lines: FedLine[] = feedStreams.map((stream) => ({ text: frame(stream, 'STARTED') }))
    const positions = { ...reached }
    let pending: Entry[] = []
    const addState = (streams: ReadonlyArray<FeedStream>): void => {
      const own = pending.filter(({ stream }) => streams.includes(stream))
      pending = pending.filter(({ stream }) => !streams.includes(stream))
      const line = formatState(streams, positions, own)
      const state = { text: line, streams, positions: { ...positions }, entries: own }
      lines.push({ text: protocol === 'singer' ? `{"type": "STATE", "value": ${line}}` : line, state })
    }
    const scopes: ReadonlyArray<ReadonlyArray<FeedStream>> =
      protocol === 'airbyte' && writing.states === 'stream' ? feedStreams.map((stream) => [stream]) : [feedStreams]
    for (const entry of entries) {
      lines.push({ text: formatRecord(entry), entry })
      positions[entry.stream] = entry.position
      pending.push(entry)
      if (drawing.happens(1 / writing.recordsPerState)) addState(drawing.pick(scopes))
      if (protocol === 'airbyte' && drawing.happens(0.02)) lines.push({ text: drawing.pick(otherLines) })
    }
    for (const scope of scopes) addState(scope)
    if (protocol === 'airbyte') for (const stream of feedStreams) lines.push({ text: frame(stream, 'COMPLETE') })
    return lines
  }

  /** What the run before has printed and said. */
  let told = ''
  let isDisturbed = false
  let lastEntries: ReadonlyArray<Entry> = []
  const open: Platform['open'] = (plan) => {
    const { index, isQuiet, connection } = plan
    const known = feed.entries.length
    feed.grow(index === 0, isQuiet)
    const entries = [
      ...feed.standing(),
      ...feed.entries.filter((entry, i) =>
        isWholeList(entry.stream) ? i >= known : entry.position > reached[entry.stream],
      ),
    ]
    const most = isQuiet ? 100 : (reconcile?.most ?? 100)
    const policy = {
      ...(isQuiet ? { dead_letter_path: letterFile, max_rejects_percent: 100 } : writing.policy),
      ...(reconcile === undefined ? {} : { max_deactivations_percent: most }),
    }
    list.followAdvice(told)
    lastEntries = entries
    isDisturbed ||= scenario.disturbances.some(({ run }) => run === index)
    const isSound = list.isSound()
    writeFileSync('config.json', JSON.stringify({ ...scenario.config, ...policy, streams: objects, ...connection }))
    writeFileSync(
      'catalog.json',
      JSON.stringify({
        streams: feedStreams.map((name) => ({
          stream: { name, json_schema: {}, supported_sync_modes: ['incremental'] },
          sync_mode: isWholeList(name) ? 'full_refresh' : 'incremental',
          destination_sync_mode: 'append',
          ...{ generation_id: 1, minimum_generation_id: 0, sync_id: 1 },
          cursor_field: ['row'],
          primary_key: keyOf(name).map((key) => [key]),
        })),
      }),
    )
    const wholeLines = drawLines(entries)
    const records = wholeLines.filter(({ entry }) => entry !== undefined)
    // Something between source and destination drops a record, if the states show how many there were.
    const canTell = protocol === 'airbyte' && writing.states !== 'legacy' && !isQuiet
    const isLossy = canTell && records.length > 0 && drawing.happens(0.1)
    const lost = isLossy ? drawing.pick(records) : undefined
    if (lost?.entry?.stream === 'places') lostCodes.add(lost.entry.code)
    const lines = wholeLines.filter((line) => line !== lost)
    const bytes = Buffer.from(lines.map(({ text }) => `${text}\n`).join(''))
    let end = 0
    const ends = lines.map(({ text }) => {
      end += Buffer.byteLength(text) + 1
      return end
    })
    const sent = lines.flatMap(({ state }) => (state === undefined ? [] : [state]))
    let settled = 0
    /** The most lines that may wait: those of the batches, and those in the buffers of the pipe. */
    const { batch_size: batchSize, rate_limit } = scenario.config as {
      readonly batch_size: number
      readonly rate_limit: { readonly max_concurrency: number }
    }
    const mostHeld = batchSize * (rate_limit.max_concurrency + 2)
    /** A stream with too many rejections may end before the other. Its records are then read and dropped. */
    const mayDrop = 'dead_letter_path' in policy && !('max_rejects_percent' in policy)
    const isSettled = ({ entry }: FedLine): boolean =>
      entry === undefined || !isGood(entry) || isApplied(entry) || service.isRefused(entry.key)
    const input = createInput(realm, chance.split(`input ${index}`), bytes, writing.input, (taken) => {
      while (settled < lines.length && isSettled(lines[settled] as FedLine)) settled += 1
      const buffered = 2 * (writing.input.room + writing.input.piece)
      const read = lines.slice(settled, ends.findLastIndex((each) => each <= taken - buffered) + 1)
      const held = read.filter(({ entry, state }) => entry !== undefined || state !== undefined).length
      if (held > mostHeld && !mayDrop)
        report('held rows', `${held} records and states beyond the buffers, at most ${mostHeld} expected`)
    })

    service.beginRun()
    list.open({
      entries,
      isTaken: () => input.taken() === bytes.length,
      isDisturbed,
      most,
    })

    /** A visit to a location that left the list before it was written is refused. */
    const hasPlaces = entries.every(
      ({ stream, code, key }) =>
        stream === 'places' || list.isListed(code, key) || service.findLocation(code) !== undefined,
    )

    /** The next state that may come back, of each stream. */
    const next = { visits: 0, places: 0 }
    const talk: string[] = []
    const failureTypes: string[] = []
    let printed = 0

    const takeState = (line: string): void => {
      printed += 1
      const stats = statsPattern.exec(line)
      const text = line.replace(statsPattern, '')
      const at = sent.findIndex((state) => state.text === text)
      const state = sent[at]
      if (state === undefined) return void report('states unchanged', line)
      for (const stream of state.streams) {
        if (at < next[stream]) report('states in order', line)
        const covered = sent.slice(next[stream], at + 1).flatMap((each) => each.entries)
        checkCovered(
          covered.filter((entry) => entry.stream === stream),
          line,
        )
        next[stream] = at + 1
        reached = { ...reached, [stream]: state.positions[stream] }
      }
      if (stats !== null) checkCounts(state, Number(stats[1]), Number(stats[2]), line)
    }
    const checkCovered = (covered: ReadonlyArray<Entry>, line: string): void => {
      if (covered.length === 0) return
      const { marks } = readSafeLetters()
      const isCounted = !('dead_letter_path' in policy)
      for (const entry of covered)
        if (
          !isApplied(entry) &&
          !marks.has(entry.mark) &&
          !(isCounted && (!isGood(entry) || service.isRefused(entry.key)))
        )
          report('state before rows', `${line} covers ${entry.mark}, ${entry.fate}`)
    }
    const checkCounts = ({ entries: own }: SentState, accepted: number, rejected: number, line: string): void => {
      const applied = own.filter(isApplied).length
      if (accepted + rejected !== own.length || accepted > applied)
        report('counts', `${line}: ${own.length} records were sent, ${applied} of them are there`)
    }
    const takeLine = (line: string): void => {
      talk.push(line)
      if (protocol === 'singer') return void takeState(line)
      const message = parseLine(line, report)
      if (message.type === 'STATE') takeState(line)
      if (message.trace?.error !== undefined) failureTypes.push(message.trace.error.failure_type)
    }
    const output = (): RunOutput => ({ talk, statuses: {}, failureTypes, states: printed, records: entries.length })
    const check = ({ status, stderr }: RunEnd): ReadonlyArray<Violation> => {
      told = [...talk, stderr].join('\n')
      list.check()
      // No input at all is an empty run.
      if (status !== 0 || input.taken() === 0) return []
      const taken = lines.filter((_, i) => (ends[i] ?? 0) <= input.taken() + 1)
      const last = ends[taken.length - 1] ?? 0
      if (protocol === 'airbyte' ? taken.length < lines.length : input.taken() > last)
        return [{ oracle: 'end of a run', what: `status 0 after ${input.taken()} of ${bytes.length} bytes` }]
      const missing = feedStreams.filter((stream) => {
        const lastOwn = sent.findLastIndex(
          ({ streams }, i) => streams.includes(stream) && taken.some(({ state }) => state === sent[i]),
        )
        return next[stream] <= lastOwn
      })
      return missing.map((stream) => ({
        oracle: 'states in order',
        what: `status 0 without the last state of ${stream}`,
      }))
    }
    return {
      args: [
        ...(protocol === 'airbyte' ? ['write'] : []),
        ...['--config', 'config.json'],
        ...(protocol === 'airbyte' ? ['--catalog', 'catalog.json'] : []),
      ],
      input,
      take: createLineReader(takeLine),
      output,
      mustComplete:
        isSound && (isQuiet || (!isLossy && hasPlaces && most === 100 && mustWriteAll(scenario, plan, entries))),
      check,
    }
  }

  const compare = (): ReadonlyArray<Violation> => {
    const violations: Violation[] = []
    const add = (oracle: string, what: string): void => void violations.push({ oracle, what })
    const { marks, reasons } = readLetters()
    const isCounted = writing.policy.on_reject === 'continue' && !('dead_letter_path' in writing.policy)
    // A letter that was synced, and is lost with the state before it, cannot come again.
    const isLost = writing.hasLetterDisk === true && disk.hasLied()
    const isTold = ({ mark }: Entry): boolean => marks.has(mark) || isCounted || isLost
    for (const entry of feed.entries) {
      // What has left a list before a run was through with it need not be anywhere.
      if (isWholeList(entry.stream) && !lastEntries.includes(entry)) continue
      const what = `${entry.mark}, ${entry.fate}`
      if (isGood(entry) && marks.has(entry.mark) && !service.isRefused(entry.key)) add('rejected for a reason', what)
      if (isApplied(entry)) {
        if (!isGood(entry) && entry.fate !== 'poison' && entry.stream === 'visits') add('nothing refused sent', what)
      } else if (isGood(entry) && !service.isRefused(entry.key)) add('nothing lost', what)
      else if (!isTold(entry)) add('nothing dropped', what)
    }
    const ids = new Map<string, string>()
    for (const [id, email] of service.visits) {
      const other = ids.get(email)
      if (other !== undefined) add('visits once', `${other} and ${id}`)
      ids.set(email, id)
    }
    const newest = new Map(
      (reconcile === undefined ? feed.entries : feed.listed())
        .filter((entry) => entry.stream === 'places' && isGood(entry))
        .map((entry) => [entry.code, entry]),
    )
    for (const [code, { position, isActive, mark, key }] of newest) {
      const held = service.findLocation(code)
      if (marks.has(mark) || service.isRefused(key)) continue
      if (held?.position !== position || held.isActive !== isActive)
        add('nothing stale', `location ${code}: ${JSON.stringify(held)} in place of ${position}, ${isActive}`)
    }
    for (const word of [...words, ...service.secrets()])
      if (reasons.some((reason) => reason.includes(word))) add('no patient', 'a reason of a dead letter')
    return [...violations, ...list.compare()]
  }

  return { service, open, compare }
}

/** Lines that other programs write between the messages. */
const otherLines = [
  '{"type":"LOG","log":{"level":"INFO","message":"a page was read"}}',
  'WARN a library wrote this',
  '',
]
