// Runs in a separate network, as root: a host `far.test` has an IPv4 address 400 ms away and an IPv6 address without a
// route. Prints one line for each program given as `check` in JSON: its stdout. argv: a folder, and the path of
// source-feedback.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import http from 'node:http'
import net from 'node:net'
import { join } from 'node:path'

const [folder, program, withRedis] = process.argv.slice(2)
// What is sent to 10.99.0.2 comes back 200 ms later, as if from there.
const delayLine = `
import os, fcntl, struct, time, heapq, select, subprocess
tun = os.open('/dev/net/tun', os.O_RDWR | os.O_NONBLOCK)
fcntl.ioctl(tun, 0x400454ca, struct.pack('16sH', b'far0', 0x1001))
for command in ('ip addr add 10.99.0.1/24 dev far0', 'ip link set far0 up'): subprocess.check_call(command.split())
print('ready', flush=True)
held, count = [], 0
while True:
    ready, _, _ = select.select([tun], [], [], max(0, held[0][0] - time.monotonic()) if held else 1)
    if ready:
        packet = bytearray(os.read(tun, 65536))
        if packet[0] >> 4 == 4:
            packet[12:16], packet[16:20] = packet[16:20], packet[12:16]
            count += 1
            heapq.heappush(held, (time.monotonic() + 0.2, count, bytes(packet)))
    while held and held[0][0] <= time.monotonic(): os.write(tun, heapq.heappop(held)[2])
`
const children = [spawn('python3', ['-c', delayLine], { stdio: ['ignore', 'pipe', 'inherit'] })]
process.on('exit', () => {
  for (const child of children) child.kill()
})
await Promise.race([once(children[0].stdout, 'data'), once(children[0], 'exit').then(() => process.exit(2))])

const service = http.createServer((request, response) => {
  let text = ''
  request.on('data', (chunk) => {
    text += chunk
  })
  request.on('end', () => {
    response.writeHead(200, { 'Content-Type': 'application/json' })
    response.end(JSON.stringify({ reviews: [], filter: JSON.parse(text) }))
  })
})
await new Promise((resolve) => service.listen(0, '10.99.0.1', resolve))

const check = async (more) => {
  const config = join(folder, 'config.json')
  const settings = {
    base_url: `http://far.test:${service.address().port}`,
    allow_http: true,
    credentials: { auth_type: 'access_token', access_token: 'not-for-anybody' },
    start_date: '2024-01-01',
    ...more,
  }
  writeFileSync(config, JSON.stringify(settings))
  const child = spawn(process.execPath, [program, 'check', '--config', config], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let text = ''
  child.stdout.on('data', (chunk) => {
    text += chunk
  })
  await once(child, 'close')
  console.log(JSON.stringify(text))
}

await check({})
if (withRedis === 'redis') {
  const args = ['--port', '6399', '--bind', '10.99.0.1', '--save', '', '--protected-mode', 'no', '--dir', folder]
  children.push(spawn('redis-server', args, { stdio: 'ignore' }))
  const isUp = () =>
    new Promise((resolve) => {
      const socket = net.connect(6399, '10.99.0.1', () => resolve(socket.destroy() !== undefined))
      socket.on('error', () => resolve(false))
    })
  while (!(await isUp())) await new Promise((resolve) => setTimeout(resolve, 50))
  await check({ rate_limit: { redis_url: 'redis://far.test:6399' } })
}
process.exit(0)
