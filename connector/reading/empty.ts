import { missingRows } from './assumptions'
import { isBounded, type ListRow, type Window } from './list'
import { askPage, isFullPage, pauseBefore } from './requests'
import type { Session } from './session'

const second = 1000

/** How many rows that were read an empty window is asked for together with. */
const maxTries = 16

/** Whether a window has no row: it is asked for together with one that was read, the next nearest at each try. */
export const isEmptyWindow = async <R extends ListRow>(session: Session<R>, window: Window): Promise<boolean> => {
  const { after = Number.NEGATIVE_INFINITY, before = Number.POSITIVE_INFINITY } = window
  if (isBounded(window) && session.anchors.length === 0) await findAnchors(session)
  const distance = (time: number): number => (time <= after ? after - time : time - before)
  const outside = session.anchors.filter((time) => time < after - second || time > before + second)
  const nearest = [...new Set(outside)].sort((a, b) => distance(a) - distance(b))
  const isInside = (time: number | undefined): boolean => time !== undefined && time > after && time < before
  for (const [tries, time] of nearest.slice(0, maxTries).entries()) {
    const wider = time <= after ? { ...window, after: time - second } : { ...window, before: time + second }
    const { rows, ...page } = await askPage(session, wider, { offset: 0 })
    const times = rows.map((row) => session.env.list.mentionTime?.(row))
    page.release?.()
    if (times.some(isInside)) return false
    if (rows.length > 0 && !isFullPage(session, { ...page, rows })) return true
    if (rows.length === 0) await pauseBefore(session, Math.min(tries, 4))
  }
  // Nothing is known beside it. Where a row was read, an empty answer proves nothing.
  const mustHaveRows = (!isBounded(window) && session.limits.longest() > 0) || session.anchors.some(isInside)
  for (let tries = 0; ; tries += 1) {
    const { rows, release } = await askPage(session, window, { offset: 0 })
    release?.()
    if (rows.length > 0) return false
    if (!mustHaveRows && (await isBelieved(session, tries))) return true
    if (mustHaveRows && !(await pauseBefore(session, tries))) throw missingRows(session)
  }
}

/**
 * Whether an empty list is believed where this run has seen no row: at once the second time, or, where the stopped run
 * had seen some, when it stays empty for as long as a moment may last.
 */
export const isBelieved = async <R extends ListRow>(session: Session<R>, tries: number): Promise<boolean> =>
  session.progress.newest === undefined ? tries > 0 : !(await pauseBefore(session, tries))

/** A resumed read knows no mention times: those of the first page will do. */
const findAnchors = async <R extends ListRow>(session: Session<R>): Promise<void> => {
  const { env, progress } = session
  for (let tries = 0; ; tries += 1) {
    const { rows, release } = await askPage(session, {}, { offset: 0 })
    rememberTimes(
      session,
      rows.flatMap((row) => env.list.mentionTime?.(row) ?? []),
    )
    release?.()
    if (rows.length > 0 || (progress.newest === undefined && tries > 0)) return
    if (progress.newest !== undefined && !(await pauseBefore(session, tries))) throw missingRows(session)
  }
}

const maxAnchors = 256

/** Remembers some of the mention times that were read, by which a window is shown to be empty. */
export const rememberTimes = <R extends ListRow>({ anchors }: Session<R>, times: ReadonlyArray<number>): void => {
  const step = Math.max(1, Math.floor(times.length / 20))
  anchors.push(...times.filter((_, i) => i % step === 0))
  anchors.splice(0, Math.max(0, anchors.length - maxAnchors))
}
