import { BarChart, type BarSeriesOption, LineChart, type LineSeriesOption } from 'echarts/charts'
import { GridComponent, type GridComponentOption } from 'echarts/components'
import { type ComposeOption, init, use } from 'echarts/core'
import { SVGRenderer } from 'echarts/renderers'

export type ChartOption = ComposeOption<BarSeriesOption | LineSeriesOption | GridComponentOption>

use([BarChart, LineChart, GridComponent, SVGRenderer])

/** A chart as SVG text that stands by itself. The build bundles this file with its library, of which nothing is installed with us. */
export const renderChart = (option: ChartOption, width: number, height: number): string => {
  const chart = init(null, null, { renderer: 'svg', ssr: true, width, height })
  chart.setOption({ animation: false, ...option })
  const svg = chart.renderToSVGString()
  chart.dispose()
  return svg.replaceAll(interactionMarkup, '')
}

/** What only a page that moves needs; some of it is numbered through, so that no two drawings would be the same. */
const interactionMarkup = /<(style|defs) ?>.*?<\/\1>\s*| (?:class|clip-path|pointer-events|ecmeta_\w+)="[^"]*"/gs
