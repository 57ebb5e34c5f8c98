import type { Responses } from '../../responses'
import { accent, baseline, bounds, type Figure, ink, none, still, text } from './figure'

export const responseTimes = ({ buckets }: Responses): Figure => ({
  height: 200,
  option: () => ({
    grid: { left: 8, right: 8, top: 24, bottom: 4, ...bounds },
    xAxis: {
      type: 'category',
      data: buckets.map(({ label }) => label),
      axisTick: none,
      axisLine: baseline,
      axisLabel: { ...text, fontSize: 11, interval: 0 },
    },
    yAxis: { type: 'value', show: false },
    series: {
      ...still,
      type: 'bar',
      barCategoryGap: '25%',
      itemStyle: { color: accent },
      data: buckets.map(({ count }) => count),
      label: { ...text, show: true, position: 'top', color: ink },
    },
  }),
})
