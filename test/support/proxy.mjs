// An HTTP proxy in a separate process. It takes its settings as JSON, prints its port, then each request on a line, and
// an empty line for each line on stdin. upstream: the port of 127.0.0.1 that every host is mapped to; answer: its reply
// to each CONNECT, '' to close immediately; silent: it does not reply; user: the required name and password; key and
// cert: it is reached over TLS.
import http from 'node:http'
import https from 'node:https'
import net from 'node:net'

const { upstream, answer, silent, user, key, cert } = JSON.parse(process.argv[2])
const wanted = user && `Basic ${Buffer.from(user).toString('base64')}`
const isWelcome = ({ headers }) => wanted === undefined || headers['proxy-authorization'] === wanted
const print = ({ method, url, headers }) => console.log(JSON.stringify({ method, url, headers }))

const connect = (request, socket) => {
  print(request)
  socket.on('error', () => undefined)
  if (silent) return
  if (answer !== undefined) return socket.end(answer)
  if (!isWelcome(request))
    return socket.end('HTTP/1.1 407 Who?\r\nProxy-Authenticate: Basic realm="x"\r\nContent-Length: 0\r\n\r\n')
  const service = net.connect(upstream, '127.0.0.1', () => {
    socket.write('HTTP/1.1 200 Connection established\r\nVia: 1.1 x\r\n\r\n')
    service.pipe(socket).pipe(service)
  })
  service.on('error', () => socket.destroy())
  for (const [one, other] of [
    [socket, service],
    [service, socket],
  ])
    one.on('close', () => other.destroy())
}

const forward = (request, response) => {
  print(request)
  if (!isWelcome(request)) return response.writeHead(407, { 'Proxy-Authenticate': 'Basic realm="x"' }).end()
  if (answer !== undefined) return response.socket.end(answer)
  const { pathname, search } = new URL(request.url)
  const { 'proxy-authorization': _, ...headers } = request.headers
  const options = { port: upstream, host: '127.0.0.1', method: request.method, path: pathname + search, headers }
  const onward = http.request(options, (answered) => {
    response.writeHead(answered.statusCode, answered.headers)
    answered.pipe(response)
  })
  onward.on('error', () => response.destroy())
  request.pipe(onward)
}

const server = key === undefined ? http.createServer(forward) : https.createServer({ key, cert }, forward)
server.on('connect', connect)
server.on('clientError', (_, socket) => socket.destroy())
server.listen(0, '127.0.0.1', () => console.log(server.address().port))

// Whoever reads our lines knows then that they have all of them.
process.stdin.on('data', () => console.log())
