import type { Clock } from '../../connector/api/http/rate-limit'

/** A clock whose waits end immediately and move its time; `waits` lists them, `pass` moves the time too. */
export const createFakeClock = (start = Date.parse('2026-01-01T00:00:00Z'), random = () => 0) => {
  const waits: number[] = []
  let ticks = 0
  const clock: Clock = {
    now: () => start + ticks,
    ticks: () => ticks,
    random,
    wait: (millis) => async () => {
      if (millis <= 0) return
      waits.push(millis)
      ticks += millis
    },
  }
  return {
    clock,
    waits,
    pass: (millis: number) => {
      ticks += millis
    },
  }
}
