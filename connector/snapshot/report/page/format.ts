export const formatCount = (count: number): string => count.toLocaleString('en')

export const formatPlural = (count: number, one: string, many = `${one}s`): string =>
  `${formatCount(count)} ${count === 1 ? one : many}`

export const formatShare = (part: number, of: number): string =>
  of === 0 ? '–' : `${((100 * part) / of).toFixed(0)} %`

/** A rating to two places; a dash where there is none. */
export const formatRating = (mean: number | null): string => (mean === null ? '–' : mean.toFixed(2))

/** A length of time in the unit people would say it in. */
export const formatDuration = (seconds: number | null): string => {
  if (seconds === null) return '–'
  if (seconds < 10) return `${Math.max(0, seconds).toFixed(1)} s`
  if (seconds < 90) return `${seconds.toFixed(0)} s`
  if (seconds < 90 * 60) return `${(seconds / 60).toFixed(0)} min`
  const [count, unit] = seconds < 48 * 3600 ? [seconds / 3600, 'h'] : [seconds / 86_400, 'd']
  return `${count.toFixed(count < 10 ? 1 : 0)} ${unit}`
}

export const formatHours = (count: number | null): string => formatDuration(count === null ? null : count * 3600)

/** `2026-11-21 04:51` of a time in ISO 8601; a dash where there is none. */
export const formatMinute = (time: string | null): string => (time === null ? '–' : time.slice(0, 16).replace('T', ' '))

export const formatDay = (time: string | null): string => (time === null ? '–' : time.slice(0, 10))

/** How long before `now` a time was. */
export const formatAge = (time: string | null, now: string): string =>
  time === null ? '–' : formatDuration((Date.parse(now) - Date.parse(time)) / 1000)
