import http from 'node:http'
import net from 'node:net'
import { Duplex } from 'node:stream'
import type { Chance } from './random'
import type { Owner, Realm } from './realm'

/** What the network does to the next answer, or to the next connection. */
export type NetworkFault =
  | 'refuse'
  | 'ignore'
  | 'cut answer'
  | 'reset answer'
  | 'drip answer'
  | 'stall answer'
  | 'reset request'

export const networkFaults: ReadonlyArray<NetworkFault> = [
  'refuse',
  'ignore',
  'cut answer',
  'reset answer',
  'drip answer',
  'stall answer',
  'reset request',
]

const connectionFaults: ReadonlyArray<NetworkFault> = ['refuse', 'ignore']

/** One end of a connection. */
type End = {
  readonly owner: Owner
  readonly socket: Duplex
  readonly isClient: boolean
  readonly findPeer: () => End
  /** When the last bytes that it sent arrive. */
  arrival: number
  /** Nothing that it sends arrives any more. */
  isStalled: boolean
  isReset: boolean
  isClosed: boolean
}

export type Network = {
  /** Does this to the next answer or connection. */
  readonly arm: (fault: NetworkFault) => void
  /** How many faults are still to come. */
  readonly armed: () => number
  /** Forgets what is armed. */
  readonly disarm: () => void
  /** From now on bytes take so long, milliseconds. */
  readonly setLatency: (least: number, most: number) => void
  /** Closes the connections of a process that has ended. */
  readonly sever: (owner: Owner) => void
  /** Closes everything. */
  readonly reset: (chance: Chance) => void
}

export type NetworkObserver = {
  /** The head of a request leaves. */
  readonly onRequest: (owner: Owner, head: string) => void
  /** Bytes reach the process that asked, on one of its connections; `isLast` of what was sent at once. */
  readonly onAnswer: (owner: Owner, connection: object, bytes: Buffer, isLast: boolean) => void
  readonly onEvent: (text: string) => void
}

const connectionError = (code: string, syscall: string): Error =>
  Object.assign(new Error(`${syscall} ${code}`), { code, syscall, errno: -1 })

/** Gives a stream what Node's HTTP uses of a socket beyond a stream; its idle time is simulated. */
const toSocket = (realm: Realm, owner: Owner, stream: Duplex, touch: { activity: () => void }): Duplex => {
  let cancel = (): void => undefined
  let idleTime = 0
  const restart = (): void => {
    cancel()
    if (idleTime > 0) cancel = realm.schedule(idleTime, owner, 'idle socket', () => stream.emit('timeout'))
  }
  touch.activity = restart
  stream.once('close', () => cancel())
  return Object.assign(stream, {
    remoteAddress: '127.0.0.1',
    remotePort: 1,
    encrypted: false,
    setNoDelay: () => stream,
    setKeepAlive: () => stream,
    ref: () => stream,
    unref: () => stream,
    setTimeout: (millis: number, callback?: () => void) => {
      idleTime = millis
      if (callback !== undefined && millis === 0) stream.off('timeout', callback)
      else if (callback !== undefined) stream.once('timeout', callback)
      restart()
      return stream
    },
    destroySoon: () => {
      if (stream.writable) stream.end()
      if (stream.writableFinished) stream.destroy()
      else stream.once('finish', () => stream.destroy())
    },
  })
}

/**
 * Takes the place of the kernel's sockets: servers of this process listen here, agents of `node:http` connect here, and
 * bytes arrive as events of the realm. HTTP is written and parsed by Node, as ever.
 */
export const installNetwork = (realm: Realm, observer: NetworkObserver): Network => {
  const servers = new Map<number, { readonly server: http.Server; readonly owner: Owner }>()
  const ends = new Set<End>()
  let armed: NetworkFault[] = []
  let latency: readonly [number, number] = [1, 5]
  let chance: Chance
  let lastPort = 1024

  const takeFault = (isConnection: boolean): NetworkFault | undefined => {
    const index = armed.findIndex((fault) => connectionFaults.includes(fault) === isConnection)
    const [fault] = index < 0 ? [] : armed.splice(index, 1)
    if (fault !== undefined) observer.onEvent(`network: ${fault}`)
    return fault
  }
  const travel = (end: End, extra = 0): number => {
    end.arrival = Math.max(end.arrival, realm.ticks()) + chance.between(latency[0], latency[1]) + extra
    return end.arrival - realm.ticks()
  }

  const resetBoth = (from: End, to: End, delay: number): void => {
    for (const end of [from, to]) {
      end.isStalled = true
      realm.schedule(delay, end.owner, 'reset', () => end.socket.destroy(connectionError('ECONNRESET', 'read')))
    }
  }
  const deliver = (from: End, to: End, bytes: Buffer, isLast: boolean, extra = 0): void => {
    realm.schedule(travel(from, extra), to.owner, `bytes ${bytes.length}`, () => {
      if (to.socket.destroyed) return
      if (to.isClient) observer.onAnswer(to.owner, to, bytes, isLast)
      to.socket.push(bytes)
    })
  }
  const send = (from: End, to: End, bytes: Buffer): void => {
    if (from.isStalled) return
    if (from.isClient) {
      if (/^(GET|POST) /.test(bytes.toString('latin1', 0, 5))) observer.onRequest(from.owner, bytes.toString('latin1'))
      return void deliver(from, to, bytes, true)
    }
    const fault = takeFault(false)
    const part = Math.floor(bytes.length * chance.next())
    switch (fault) {
      case undefined:
      case 'refuse':
      case 'ignore':
        return void deliver(from, to, bytes, true)
      case 'stall answer':
        from.isStalled = true
        return
      case 'reset request':
        return void resetBoth(from, to, travel(from))
      case 'cut answer':
        deliver(from, to, bytes.subarray(0, part), false)
        realm.schedule(travel(from), to.owner, 'end', () => to.socket.push(null))
        from.isStalled = true
        return
      case 'reset answer':
        deliver(from, to, bytes.subarray(0, part), false)
        return void resetBoth(from, to, travel(from))
      case 'drip answer': {
        const pieces = chance.between(2, 12)
        const pause = chance.pick([10, 1_000, 20_000])
        for (let i = 0; i < pieces; i += 1) {
          const [start, end] = [i, i + 1].map((n) => Math.floor((bytes.length * n) / pieces))
          deliver(from, to, bytes.subarray(start, end), i === pieces - 1, pause)
        }
      }
    }
  }
  const close = (end: End): void => {
    if (end.isClosed) return
    const peer = end.findPeer()
    end.isClosed = true
    ends.delete(end)
    if (end.isStalled) return
    realm.schedule(travel(end), peer.owner, 'closed', () => {
      if (peer.socket.destroyed) return
      if (end.isReset) peer.socket.destroy(connectionError('ECONNRESET', 'read'))
      else if (!peer.socket.readableEnded) peer.socket.push(null)
    })
  }

  const createEnd = (owner: Owner, isClient: boolean, findPeer: () => End): End => {
    const touch = { activity: (): void => undefined }
    const stream = new Duplex({
      allowHalfOpen: !isClient,
      read: () => touch.activity(),
      write: (chunk: Buffer, _encoding, callback) => {
        touch.activity()
        send(end, findPeer(), Buffer.from(chunk))
        callback()
      },
      final: (callback) => {
        close(end)
        callback()
      },
      destroy: (error, callback) => {
        close(end)
        callback(error)
      },
    })
    const end: End = {
      owner,
      socket: toSocket(realm, owner, stream, touch),
      isClient,
      findPeer,
      arrival: 0,
      isStalled: false,
      isReset: false,
      isClosed: false,
    }
    Object.assign(stream, {
      resetAndDestroy: () => {
        end.isReset = true
        return stream.destroy()
      },
    })
    ends.add(end)
    return end
  }

  const connect = ({ port }: { readonly port?: number | string | null }): Duplex => {
    const listening = servers.get(Number(port))
    const client: End = createEnd(realm.owner(), true, () => server)
    const server: End = createEnd(listening?.owner ?? client.owner, false, () => client)
    const fault = takeFault(true)
    Object.assign(client.socket, { connecting: true })
    if (fault === 'ignore') {
      client.isStalled = true
      return client.socket
    }
    const delay = travel(client)
    server.arrival = client.arrival
    if (listening === undefined || fault === 'refuse') {
      client.isStalled = true
      realm.schedule(delay, client.owner, 'refused', () =>
        client.socket.destroy(connectionError('ECONNREFUSED', 'connect')),
      )
      return client.socket
    }
    realm.schedule(delay, listening.owner, 'accept', () => void listening.server.emit('connection', server.socket))
    realm.schedule(delay, client.owner, 'connected', () => {
      Object.assign(client.socket, { connecting: false })
      client.socket.emit('connect')
      client.socket.emit('ready')
    })
    return client.socket
  }

  Object.assign(http.Agent.prototype, { createConnection: connect })
  const listeningPorts = new WeakMap<object, number>()
  Object.assign(net.Server.prototype, {
    listen(this: http.Server, _port: number, _host: string, callback: () => void) {
      lastPort += 1
      // Node checks these in real time.
      Object.assign(this, { requestTimeout: 0, headersTimeout: 0 })
      servers.set(lastPort, { server: this, owner: realm.owner() })
      listeningPorts.set(this, lastPort)
      process.nextTick(callback)
      return this
    },
    address(this: http.Server) {
      return { address: '127.0.0.1', family: 'IPv4', port: listeningPorts.get(this) }
    },
  })
  Object.assign(http.Server.prototype, {
    close(this: http.Server, callback?: () => void) {
      servers.delete(listeningPorts.get(this) ?? 0)
      if (callback !== undefined) process.nextTick(callback)
      return this
    },
  })

  return {
    arm: (fault) => void armed.push(fault),
    armed: () => armed.length,
    disarm: () => {
      armed = []
    },
    setLatency: (least, most) => {
      latency = [least, most]
    },
    sever: (owner) => {
      for (const end of [...ends]) {
        if (end.owner !== owner) continue
        // Its own end is left as it is: none of its code runs any more.
        end.isReset = chance.happens(0.5)
        close(end)
      }
    },
    reset: (next) => {
      for (const end of [...ends]) {
        end.isStalled = true
        end.socket.on('error', () => undefined).destroy()
      }
      ends.clear()
      servers.clear()
      armed = []
      latency = [1, 5]
      lastPort = 1024
      chance = next
    },
  }
}
