// Makes the pictures of the README from the built commands: `node scripts/pictures.mjs`. Needs Chromium.
import { execFileSync, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const pictures = join(root, 'docs', 'pictures')
const program = join(root, 'build', 'bin', 'feedback.js')
const folder = mkdtempSync(join(tmpdir(), 'pictures-'))
const feedback = (...args) =>
  execFileSync(process.execPath, [program, ...args], {
    cwd: folder,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  })

const escape = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

/** Lines of a terminal as a picture that needs no embedded font. */
const terminalPicture = (lines) => {
  const [width, height] = [Math.max(...lines.map((line) => line.length)) * 8.4 + 40, lines.length * 20 + 40]
  const rows = lines.map((line, i) => `<text x="20" y="${34 + i * 20}" xml:space="preserve">${escape(line)}</text>`)
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}">
<title>feedback sync in a terminal</title>
<rect width="100%" height="100%" rx="8" fill="#1b1f24"/>
<g fill="#d8dee4" font-family="ui-monospace, Menlo, Consolas, monospace" font-size="14">
${rows.join('\n')}
</g>
</svg>
`
}

/** Starts a service with 5,000 reviews. Its first line of output has its address and its token. */
const startService = async () => {
  const child = spawn(process.execPath, [program, 'sandbox', '--reviews', '5000', '--port', '0'], { cwd: folder })
  let output = ''
  for await (const chunk of child.stdout) {
    output += chunk
    if (output.includes('\n')) break
  }
  return { ...JSON.parse(output), close: () => child.kill() }
}

mkdirSync(pictures, { recursive: true })
const service = await startService()
try {
  const config = {
    base_url: service.url,
    credentials: { auth_type: 'access_token', access_token: service.access_token },
    start_date: '2024-01-01',
    entities: { from_reviews: { locations: true } },
  }
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config))
  const sync = ['sync', '--config', 'config.json', '--db', 'reviews.duckdb']
  const lines = [
    `$ feedback ${sync.join(' ')}`,
    ...feedback(...sync)
      .trimEnd()
      .split('\n'),
  ]
  writeFileSync(join(pictures, 'sync.svg'), terminalPicture(lines))
  feedback('report', '--db', 'reviews.duckdb', '--out', 'report.html')
  execFileSync(
    'chromium',
    [
      ...['--headless', '--no-sandbox', '--hide-scrollbars', '--force-color-profile=srgb', '--window-size=1200,900'],
      `--screenshot=${join(pictures, 'report.png')}`,
      `file://${join(folder, 'report.html')}`,
    ],
    { stdio: 'ignore' },
  )
} finally {
  service.close()
  rmSync(folder, { recursive: true })
}
