import { missingRows } from './assumptions'
import { isBounded, type ListRow, type Window } from './list'
import { askPage, isFullPage, pauseBefore } from './requests'
import type { Session } from './session'

const second = 1000

/** How many rows already read are tried to prove that a window is empty. */
const maxTries = 16

/**
 * Resolves to true if a window has no rows. Asks for it together with a row already read; each try takes the next
 * nearest one.
 */
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
  // There are no rows to compare with. If this window has shown rows, an empty answer proves nothing.
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
 * Decides if an empty list can be believed. If no run has seen a row, the second empty answer is enough; if the stopped
 * run had seen rows, the list must stay empty for the full waiting time.
 */
export const isBelieved = async <R extends ListRow>(session: Session<R>, tries: number): Promise<boolean> =>
  session.progress.newest === undefined ? tries > 0 : !(await pauseBefore(session, tries))

/** A resumed read has no mention times yet; those of the first page are enough. */
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

/** Remembers some mention times of rows that were read. They are used to show that a window is empty. */
export const rememberTimes = <R extends ListRow>({ anchors }: Session<R>, times: ReadonlyArray<number>): void => {
  const step = Math.max(1, Math.floor(times.length / 20))
  anchors.push(...times.filter((_, i) => i % step === 0))
  anchors.splice(0, Math.max(0, anchors.length - maxAnchors))
}
