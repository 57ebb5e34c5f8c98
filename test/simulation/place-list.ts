import type { Entry, Feed } from './feed'
import type { SimulatedDisk } from './file-disk'
import type { Violation } from './oracles'
import { ledgerFile, type WritingScenario } from './scenario-writing'
import type { WrittenService } from './service-writing'

/** The records of a run, as the platform has given them. */
type GivenList = {
  readonly entries: ReadonlyArray<Entry>
  /** The program has taken the whole input. */
  readonly isTaken: () => boolean
  /** Something has gone wrong in the world so far. */
  readonly isDisturbed: boolean
  readonly most: number
}

/** Follows the locations that leave the list. */
export type ListWatch = {
  /** Another run begins with this list. */
  readonly open: (list: GivenList) => void
  /** Called for a location that is deactivated without a record asking for it. */
  readonly onDeactivation: (code: string) => void
  /** The run has a good record of this location before this visit. */
  readonly isListed: (code: string, visit: string) => boolean
  /** The ledger can be read. */
  readonly isSound: () => boolean
  /** After each run. */
  readonly check: () => void
  /** Does to the ledger what a run's message advises. */
  readonly followAdvice: (told: string) => void
  /** After the last run, which had the whole list. */
  readonly compare: () => ReadonlyArray<Violation>
}

const isJson = (line: string): boolean => {
  try {
    return typeof JSON.parse(line) === 'object'
  } catch {
    return false
  }
}

const hasCode = ({ record }: Entry): boolean => record.code !== undefined

export const createListWatch = (
  { writing: { reconcile, service: traits } }: WritingScenario,
  disk: SimulatedDisk,
  feed: Feed,
  service: () => WrittenService,
  report: (oracle: string, what: string) => void,
): ListWatch => {
  const fold = (code: string): string => (traits.list?.isLowerCase ? code.toLowerCase() : code)
  let given: GivenList | undefined
  let places: ReadonlyArray<Entry> = []
  let deactivated = new Set<string>()
  /** How many locations were active when the run began. */
  let active = 0

  const entriesOf = (code: string): ReadonlyArray<Entry> =>
    places.filter((entry) => hasCode(entry) && fold(entry.code) === fold(code))
  const isForeign = (code: string): boolean => /^[FG]/i.test(code)
  const isOurs = (code: string): boolean => !isForeign(code)
  const countActive = (): number =>
    [...service().locations].filter(
      ([code, { isActive }]) => isActive && (isOurs(code) || reconcile?.deactivatesUnlisted),
    ).length

  const isSound = (): boolean => {
    const text = disk.read(ledgerFile) ?? ''
    return (
      text === '' ||
      (text.endsWith('\n') ? text.slice(0, -1) : text.slice(0, text.lastIndexOf('\n'))).split('\n').every(isJson)
    )
  }

  return {
    open: (list) => {
      given = list
      places = list.entries.filter(({ stream }) => stream === 'places')
      deactivated = new Set()
      active = countActive()
    },
    onDeactivation: (code) => {
      const own = entriesOf(code)
      if (own.some(({ isActive, fate }) => isActive || fate === 'incomplete') && !own.some(({ isActive }) => !isActive))
        report('nothing listed deactivated', `location ${code}`)
      if (given?.isTaken() !== true || places.some((entry) => !hasCode(entry)))
        report('a whole list', `location ${code} was deactivated`)
      if (reconcile === undefined || (!reconcile.deactivatesUnlisted && (!reconcile.hasLedger || isForeign(code))))
        report('only its own deactivated', `location ${code}`)
      if (service().findLocation(code)?.isActive) deactivated.add(fold(code))
      // Those whose answer was lost do not count; in an undisturbed world there are none.
      const most = ((given?.most ?? 0) * (active + places.length)) / 100
      if (given?.isDisturbed === false && deactivated.size > most)
        report('few deactivations', `${deactivated.size} locations, at most ${most} expected`)
    },
    isListed: (code, visit) => {
      if (reconcile === undefined) return true
      const { entries = [] } = given ?? {}
      // A location that has left the list, or whose record is wrong, may get its next good record behind visits that
      // are read once more: these cannot wait for it.
      const first = entries.findIndex(({ stream, key }) => stream === 'visits' && key === visit)
      const own = new Set(entriesOf(code))
      return entries.slice(0, first).some((entry) => entry.fate === 'good' && own.has(entry))
    },
    isSound,
    check: () => {
      if (!isSound() && !disk.hasFailed()) report('a whole ledger', 'it cannot be read')
    },
    followAdvice: (told) => {
      if (told.includes('is not a ledger of this destination. Name another file')) disk.write(ledgerFile, undefined)
      const lines = (disk.read(ledgerFile) ?? '').split('\n')
      if (/is damaged at line \d+\. Correct or delete that line/.test(told))
        disk.write(ledgerFile, lines.filter((line, i) => i === lines.length - 1 || isJson(line)).join('\n'))
    },
    compare: () => {
      if (reconcile === undefined) return []
      const listed = new Set(feed.listed().map(({ code }) => fold(code)))
      // An empty list deactivates nothing.
      if (listed.size === 0) return []
      const unclear = new Set(
        feed.entries
          .filter(({ key, stream, fate }) => stream === 'places' && fate === 'good' && service().isRefused(key))
          .map(({ code }) => fold(code)),
      )
      return [...service().locations].flatMap(([code, { isActive }]) => {
        if (listed.has(code) || unclear.has(code)) return []
        const mustBeActive = isForeign(code) && !reconcile.deactivatesUnlisted
        // What was synced and is lost the destination cannot know.
        const isLost = isOurs(code) && disk.hasLied() && !reconcile.deactivatesUnlisted
        // Of a list whose end the service refused in the last run nothing is known, and nobody but a ledger that is
        // whole names a location.
        const isUntold =
          isActive &&
          service().hasRefusedEnd() &&
          reconcile.deactivatesUnlisted &&
          !(reconcile.hasLedger && isOurs(code) && !disk.hasLied())
        const mayBeEither = isLost || isUntold
        return mayBeEither || isActive === mustBeActive
          ? []
          : [
              {
                oracle: 'nothing stale',
                what: `location ${code}, which is not listed, is ${isActive ? 'active' : 'inactive'}`,
              },
            ]
      })
    },
  }
}
