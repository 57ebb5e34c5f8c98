export const whole = (count: number): string => count.toLocaleString('en')

export const plural = (count: number, one: string, many = `${one}s`): string =>
  `${whole(count)} ${count === 1 ? one : many}`

export const share = (part: number, of: number): string => (of === 0 ? '–' : `${((100 * part) / of).toFixed(0)} %`)

/** A rating to two places; a dash where there is none. */
export const rating = (mean: number | null): string => (mean === null ? '–' : mean.toFixed(2))

/** A length of time in the unit people would say it in. */
export const duration = (seconds: number | null): string => {
  if (seconds === null) return '–'
  if (seconds < 10) return `${Math.max(0, seconds).toFixed(1)} s`
  if (seconds < 90) return `${seconds.toFixed(0)} s`
  if (seconds < 90 * 60) return `${(seconds / 60).toFixed(0)} min`
  const [count, unit] = seconds < 48 * 3600 ? [seconds / 3600, 'h'] : [seconds / 86_400, 'd']
  return `${count.toFixed(count < 10 ? 1 : 0)} ${unit}`
}

export const hours = (count: number | null): string => duration(count === null ? null : count * 3600)

/** `2026-11-21 04:51` of a time in ISO 8601; a dash where there is none. */
export const minute = (time: string | null): string => (time === null ? '–' : time.slice(0, 16).replace('T', ' '))

export const day = (time: string | null): string => (time === null ? '–' : time.slice(0, 10))

/** How long before `now` a time was. */
export const age = (time: string | null, now: string): string =>
  time === null ? '–' : duration((Date.parse(now) - Date.parse(time)) / 1000)
