import { createServer } from 'node:http'

// Takes visit records and answers Success for each, from memory.
const server = createServer(async (request, response) => {
  const chunks = []
  for await (const chunk of request) chunks.push(chunk)
  const visits = JSON.parse(Buffer.concat(chunks).toString())
  const records = Object.fromEntries(visits.map(({ visitRecordId }) => [visitRecordId, 'Success']))
  const body = JSON.stringify({ status: { code: 200, message: 'Success' }, records })
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })
  response.end(body)
})

server.keepAliveTimeout = 60_000
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`${JSON.stringify({ url: `http://127.0.0.1:${server.address().port}` })}\n`)
})
process.stdin.resume().on('end', () => process.exit())
