import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import manifest from '../../package.json'

const root = join(__dirname, '..', '..')

it('the bundle of the charts and their library is one small file that runs without installed packages', () => {
  const folder = mkdtempSync(join(tmpdir(), 'charts-'))
  try {
    execFileSync(process.execPath, [join(root, 'scripts/bundle-charts.mjs'), folder])
    const file = join(folder, 'report/charts.js')
    const text = readFileSync(file, 'utf8')
    expect(text.length).toBeLessThan(700_000)
    expect(text).toContain('Apache License')
    expect(text).toContain('BSD 3-Clause License')
    const option = `{ xAxis: { type: 'category', data: ['<b>'] }, yAxis: {}, series: { type: 'bar', data: [1] } }`
    const svg = execFileSync(
      process.execPath,
      ['-p', `require(${JSON.stringify(file)}).renderChart(${option}, 300, 200)`],
      {
        cwd: folder,
      },
    ).toString()
    expect(svg).toContain('viewBox="0 0 300 200"')
    expect(svg).toContain('&lt;b&gt;')
  } finally {
    rmSync(folder, { recursive: true })
  }
  expect(Object.keys(manifest.dependencies)).not.toContain('echarts')
})
