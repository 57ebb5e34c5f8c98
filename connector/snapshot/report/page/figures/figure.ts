import type { ChartOption } from '../../../charts'

/** A chart at the width it will have on the page, so that its text keeps its size. */
export type Figure = { readonly height: number; readonly option: (width: number) => ChartOption }

/** Colours are names of the page's style, so that one drawing serves light, dark and paper. */
export const ink = 'var(--ink)'
export const accent = 'var(--accent)'
export const text = { fontFamily: 'inherit', fontSize: 12, color: 'var(--muted)' }

export const none = { show: false } as const
export const baseline = { lineStyle: { color: 'var(--line)' } } as const
export const still = { silent: true, emphasis: { disabled: true } } as const
/** The room that the labels of an axis take is taken from the chart, not from the page. */
export const bounds = { outerBoundsMode: 'same', outerBoundsContain: 'axisLabel' } as const
