import { BarChart, type BarSeriesOption, LineChart, type LineSeriesOption } from 'echarts/charts'
import { GridComponent, type GridComponentOption } from 'echarts/components'
import { type ComposeOption, init, use } from 'echarts/core'
import { SVGRenderer } from 'echarts/renderers'

export type ChartOption = ComposeOption<BarSeriesOption | LineSeriesOption | GridComponentOption>

use([BarChart, LineChart, GridComponent, SVGRenderer])

/** A chart as SVG text that needs nothing else. The build bundles this file with the chart library, which is not a dependency of the package. */
export const renderChart = (option: ChartOption, width: number, height: number): string => {
  const chart = init(null, null, { renderer: 'svg', ssr: true, width, height })
  chart.setOption({ animation: false, ...option })
  const svg = chart.renderToSVGString()
  chart.dispose()
  return svg.replaceAll(interactionMarkup, '').replaceAll(hatchedBar, drawHatchedBar)
}

/** The colour of a bar that is drawn hatched. */
export const hatchColor = 'var(--hatch)'

/** A bar of that colour: a corner, the width to the opposite side, and the height. */
const hatchedBar =
  /<path d="M([\d.]+) ([\d.]+)l(-?[\d.]+) 0l0 (-?[\d.]+)l-?[\d.]+ 0Z" fill="var\(--hatch\)"[^>]*><\/path>/g

const hatchStep = 5

/** An outline with diagonal lines, drawn line by line: a pattern would need an address, which the page forbids. */
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
  return `<path d="M${left} ${top.toFixed(1)}H${right.toFixed(1)}V${bottom}H${left}Z${lines.join('')}" fill="none" stroke="var(--accent)"></path>`
}

/** Markup that only interactive charts need. Parts of it carry running numbers, so two drawings of the same data would differ. */
const interactionMarkup = /<(style|defs) ?>.*?<\/\1>\s*| (?:class|clip-path|pointer-events|ecmeta_\w+)="[^"]*"/gs
