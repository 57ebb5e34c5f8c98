import type { ResponseStatistics } from '../../responses'
import {
  accentColor,
  axisBounds,
  baselineStyle,
  type Figure,
  hiddenAxis,
  inkColor,
  labelText,
  staticSeries,
} from './figure'

export const plotResponseTimes = ({ buckets }: ResponseStatistics): Figure => ({
  height: 200,
  option: () => ({
    grid: { left: 8, right: 8, top: 24, bottom: 4, ...axisBounds },
    xAxis: {
      type: 'category',
      data: buckets.map(({ label }) => label),
      axisTick: hiddenAxis,
      axisLine: baselineStyle,
      axisLabel: { ...labelText, fontSize: 11, interval: 0 },
    },
    yAxis: { type: 'value', show: false },
    series: {
      ...staticSeries,
      type: 'bar',
      barCategoryGap: '25%',
      itemStyle: { color: accentColor },
      data: buckets.map(({ count }) => count),
      label: { ...labelText, show: true, position: 'top', color: inkColor },
    },
  }),
})
