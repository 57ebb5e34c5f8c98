import { BarChart, type BarSeriesOption, LineChart, type LineSeriesOption } from 'echarts/charts'
import { GridComponent, type GridComponentOption } from 'echarts/components'
import { type ComposeOption, init, use } from 'echarts/core'
import { SVGRenderer } from 'echarts/renderers'

type ChartOption = ComposeOption<BarSeriesOption | LineSeriesOption | GridComponentOption>

use([BarChart, LineChart, GridComponent, SVGRenderer])

/**
 * A chart as self-contained SVG. The build bundles this file with the chart library, which is not a dependency of the
 * package.
 */
export const renderChart = (option: ChartOption, width: number, height: number): string => {
  const chart = init(null, null, { renderer: 'svg', ssr: true, width, height })
  chart.setOption({ animation: false, ...option })
  const svg = chart.renderToSVGString()
  chart.dispose()
  return svg.replaceAll(interactionMarkup, '').replaceAll(hatchedBar, drawHatchedBar)
}

/** The color that makes a bar hatched. */
export const hatchColor = 'var(--hatch)'

/** Draws a bar of that color: a corner, the width to the opposite side, and the height. */
const hatchedBar =
  /<path d="M([\d.]+) ([\d.]+)l(-?[\d.]+) 0l0 (-?[\d.]+)l-?[\d.]+ 0Z" fill="var\(--hatch\)"[^>]*><\/path>/g

const hatchStep = 5

/** An outline with diagonal lines, drawn line by line. A pattern would need a URL, which the page forbids. */
const drawHatchedBar = (_path: string, ...corners: ReadonlyArray<string>): string => {
  const [x = 0, y = 0, width = 0, height = 0] = corners.slice(0, 4).map(Number)
  const [left, right, top, bottom] = [
    Math.min(x, x + width),
    Math.max(x, x + width),
    Math.min(y, y + height),
    Math.max(y, y + height),
  ]
  const lines: Array<string> = []
  for (let sum = left + top + hatchStep; sum < right + bottom; sum += hatchStep) {
    const from = Math.max(left, sum - bottom)
    const to = Math.min(right, sum - top)
    lines.push(`M${from.toFixed(1)} ${(sum - from).toFixed(1)}L${to.toFixed(1)} ${(sum - to).toFixed(1)}`)
  }
  return (
    `<path d="M${left} ${top.toFixed(1)}H${right.toFixed(1)}V${bottom}H${left}Z${lines.join('')}" ` +
    'fill="none" stroke="var(--accent)"></path>'
  )
}

/**
 * Markup that only interactive charts need. It contains running numbers, so two drawings of the same data would differ.
 */
const interactionMarkup = /<(style|defs) ?>.*?<\/\1>\s*| (?:class|clip-path|pointer-events|ecmeta_\w+)="[^"]*"/gs

/** A chart and its height in pixels. `option` takes the width on the page, so that the text keeps its size. */
export type Figure = { readonly height: number; readonly option: (width: number) => ChartOption }

/** Colors are variables of the page's style, so that one drawing works on a light page, a dark page and paper. */
export const inkColor = 'var(--ink)'
export const accentColor = 'var(--accent)'
export const labelText = { fontFamily: 'inherit', fontSize: 12, color: 'var(--muted)' }

const hiddenAxis = { show: false } as const
const baselineStyle = { lineStyle: { color: 'var(--line)' } } as const
export const staticSeries = { silent: true, emphasis: { disabled: true } } as const

/** Axis labels take their space from the chart, not from the page. */
const axisBounds = { outerBoundsMode: 'same', outerBoundsContain: 'axisLabel' } as const

export const barChartHeight = (rows: number): number => rows * 32 + 8

/**
 * Extra pixels for each character of a label, because a browser's font may be wider than the one that the library
 * assumes.
 */
const nameMargin = 0.9

/**
 * Axes for bars from left to right, each after its name. `right`: the margin in pixels; `max`: the value of a
 * full-length bar.
 */
export const barChartAxes = (names: ReadonlyArray<string>, right: number, max?: number) =>
  ({
    grid: {
      left: 4 + Math.round(nameMargin * Math.max(...names.map(({ length }) => length))),
      right,
      top: 4,
      bottom: 4,
      ...axisBounds,
    },
    xAxis: { type: 'value', show: false, ...(max === undefined ? {} : { max }) },
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

export const chartHeight = 130
export const chartGrid = { left: 8, right: 30, top: 12, bottom: 4, ...axisBounds }
export const valueAxis = { type: 'value', axisLabel: labelText, splitNumber: 3, splitLine: baselineStyle } as const

/** An axis with as many labels as fit, always including the last month. */
export const createTimeAxis = (months: ReadonlyArray<string>, width: number): NonNullable<ChartOption['xAxis']> => {
  const step = Math.ceil(months.length / Math.max(1, Math.floor(width / 70)))
  return {
    type: 'category',
    data: [...months],
    axisTick: hiddenAxis,
    axisLine: baselineStyle,
    axisLabel: { ...labelText, interval: (index: number) => (months.length - 1 - index) % step === 0 },
  }
}

type ValueScale = {
  readonly min: number | ((extent: { readonly min: number }) => number)
  readonly max?: number
  readonly axisLabel?: typeof labelText & { readonly formatter: string }
}

export const plotLine = (
  months: ReadonlyArray<string>,
  scale: ValueScale,
  data: ReadonlyArray<number | '-'>,
): Figure => ({
  height: chartHeight,
  option: (width) => ({
    grid: chartGrid,
    xAxis: createTimeAxis(months, width),
    yAxis: { ...valueAxis, ...scale },
    series: {
      ...staticSeries,
      type: 'line',
      data: [...data],
      symbol: 'circle',
      symbolSize: 5,
      showAllSymbol: true,
      lineStyle: { color: accentColor, width: 2 },
      itemStyle: { color: accentColor },
    },
  }),
})
