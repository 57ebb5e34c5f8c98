// One of several processes of a test that share a limit: sends `count` requests to a URL, or four jobs that never end.
import { createRequire } from 'node:module'

const [build, redis_url, id, perMinute, count, url] = process.argv.slice(2)
const { createSharedLimiter } = createRequire(import.meta.url)(`${build}/api/http/redis-rate-limit.js`)
const limiter = createSharedLimiter(
  { max_concurrency: 4, requests_per_minute: Number(perMinute) },
  { redis_url, id, expiration: 1000, connectSeconds: 5 },
)

if (count === 'forever')
  for (let i = 0; i < 4; i++)
    limiter.schedule(() => {
      process.stdout.write('.')
      return new Promise(() => setInterval(() => undefined, 1000))
    })()
else {
  const results = await Promise.all(
    Array.from({ length: Number(count) }, () =>
      limiter.schedule(() => fetch(url).then((response) => response.text()))(),
    ),
  )
  await limiter.close()
  if (results.some(({ _tag }) => _tag === 'Left')) throw new Error(JSON.stringify(results))
}
