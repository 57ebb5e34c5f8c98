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
  return svg.replaceAll(interactionMarkup, '')
}

/** Markup that only interactive charts need. Parts of it carry running numbers, so two drawings of the same data would differ. */
const interactionMarkup = /<(style|defs) ?>.*?<\/\1>\s*| (?:class|clip-path|pointer-events|ecmeta_\w+)="[^"]*"/gs
