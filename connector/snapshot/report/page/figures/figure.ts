import type { ChartOption } from '../../../charts'

/** A chart at the width it will have on the page, so that its text keeps its size. */
export type Figure = { readonly height: number; readonly option: (width: number) => ChartOption }

/** Colours are names of the page's style, so that one drawing serves light, dark and paper. */
export const inkColor = 'var(--ink)'
export const accentColor = 'var(--accent)'
export const labelText = { fontFamily: 'inherit', fontSize: 12, color: 'var(--muted)' }

export const hiddenAxis = { show: false } as const
export const baselineStyle = { lineStyle: { color: 'var(--line)' } } as const
export const staticSeries = { silent: true, emphasis: { disabled: true } } as const
/** The room that the labels of an axis take is taken from the chart, not from the page. */
export const axisBounds = { outerBoundsMode: 'same', outerBoundsContain: 'axisLabel' } as const
