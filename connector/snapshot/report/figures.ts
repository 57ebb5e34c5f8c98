import { defined } from '../../cdk'
import type { ChartOption } from './charts'

/** A chart and its height in pixels; `option` takes the width on the page, so that the text keeps its size. */
export type Figure = { readonly height: number; readonly option: (width: number) => ChartOption }

/** Colours are variables of the page's style, so that one drawing works on a light page, a dark page and on paper. */
export const inkColor = 'var(--ink)'
export const accentColor = 'var(--accent)'
export const labelText = { fontFamily: 'inherit', fontSize: 12, color: 'var(--muted)' }

export const hiddenAxis = { show: false } as const
export const baselineStyle = { lineStyle: { color: 'var(--line)' } } as const
export const staticSeries = { silent: true, emphasis: { disabled: true } } as const
/** The labels of an axis take their space from the chart, not from the page. */
export const axisBounds = { outerBoundsMode: 'same', outerBoundsContain: 'axisLabel' } as const

const maxNameLength = 28
export const barChartHeight = (rows: number): number => rows * 32 + 8

/** Pixels to add for each character of a label, since a browser's font may be wider than the one the library assumes. */
const nameMargin = 0.9

/** Axes for bars from left to right, each after its name. `right`: the margin in pixels; `max`: the value of a bar of full length. */
export const barChartAxes = (names: ReadonlyArray<string>, right: number, max?: number) =>
  ({
    grid: {
      left: 4 + Math.round(nameMargin * Math.max(...names.map(({ length }) => length))),
      right,
      top: 4,
      bottom: 4,
      ...axisBounds,
    },
    xAxis: { type: 'value', show: false, ...defined({ max }) },
    yAxis: {
      type: 'category',
      inverse: true,
      data: [...names],
      axisTick: hiddenAxis,
      axisLine: hiddenAxis,
      axisLabel: { ...labelText, color: inkColor, interval: 0 },
    },
  }) satisfies ChartOption

export const barSeries = { ...staticSeries, type: 'bar', barWidth: 20 } as const

export const shortCategoryName = (category: string | null): string => {
  const name = category ?? 'No category'
  return name.length > maxNameLength ? `${name.slice(0, maxNameLength - 1)}…` : name
}
