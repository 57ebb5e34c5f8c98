const { writeFileSync } = require('node:fs')

process.on('exit', () => {
  const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage()
  writeFileSync(
    process.env.BENCH_USAGE,
    JSON.stringify({ cpu: (userCPUTime + systemCPUTime) / 1e6, peak: maxRSS / 1024 }),
  )
})
