// Spends a shared budget: as many requests to a URL as told, or one that never ends. One of several processes of a test.
import { createRequire } from 'node:module'

const [build, redis_url, id, perMinute, count, url] = process.argv.slice(2)
const { createSharedLimiter } = createRequire(import.meta.url)(`${build}/api/http/shared-rate-limit.js`)
const budget = createSharedLimiter(
  { max_concurrency: 4, requests_per_minute: Number(perMinute) },
  { redis_url, id, expiration: 1000 },
)

if (count === 'forever')
  for (let i = 0; i < 4; i++)
    budget.schedule(() => {
      process.stdout.write('.')
      return new Promise(() => setInterval(() => undefined, 1000))
    })()
else {
  const answers = await Promise.all(
    Array.from({ length: Number(count) }, () =>
      budget.schedule(() => fetch(url).then((response) => response.text()))(),
    ),
  )
  await budget.close()
  if (answers.some(({ _tag }) => _tag === 'Left')) throw new Error(JSON.stringify(answers))
}
