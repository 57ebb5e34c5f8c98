import { BlockList, isIP } from 'node:net'
import { unescape } from 'node:querystring'
import * as E from 'fp-ts/Either'
import { configFailure, defined, transientFailure } from '../../cdk'
import { type ApiError, isTlsCode, isTlsProtocolCode, isUnreachableCode } from '../error'
import { isLoopback } from './url'

/** The environment variables, some of which name proxies. An empty one counts as missing. */
export type ProxyVariables = Readonly<Record<string, string | undefined>>

/** An HTTP proxy between us and the service. */
export type ProxyServer = {
  readonly protocol: 'http:' | 'https:'
  readonly hostname: string
  readonly port: number
  /** The value of the header Proxy-Authorization. */
  readonly authorization?: string
  /** The environment variable that names it. */
  readonly variable: string
  /** For messages: host, port and variable, without user name and password. */
  readonly label: string
}

const proxyError = (code: string, cause: (ApiError & { _tag: 'Proxy' })['cause']): ApiError => ({
  _tag: 'Proxy',
  code,
  cause,
})

/** The first of these variables that is set. Lower case comes before upper case, as in curl. */
const firstVariable = (
  env: ProxyVariables,
  names: ReadonlyArray<string>,
): readonly [name: string, value: string] | [] => {
  const name = names.flatMap((one) => [one, one.toUpperCase()]).find((one) => (env[one] ?? '').trim() !== '')
  return name === undefined ? [] : [name, (env[name] ?? '').trim()]
}

/** The proxy in a variable, given as `host:port` or as a URL. User name and password are URL-encoded. */
const parseProxy = (variable: string, value: string): E.Either<ApiError, ProxyServer> => {
  const address = /^[a-z][a-z\d+.-]*:\/\//i.test(value) ? value : `http://${value}`
  const url = URL.canParse(address) ? new URL(address) : undefined
  // An @ after the host belongs to a password with an unencoded / or #, part of which would be taken for the host.
  if (url === undefined || url.hostname === '' || (url.pathname + url.search + url.hash).includes('@'))
    return E.left(
      proxyError(
        'ERR_INVALID_PROXY',
        configFailure(
          `the environment variable ${variable} is not the address of a proxy. ` +
            'Give one such as http://proxy.example.com:3128; write special ' +
            'characters of a user name or password as in any URL, such as %40 for @.',
        ),
      ),
    )
  const { protocol } = url
  if (protocol !== 'http:' && protocol !== 'https:')
    return E.left(
      proxyError(
        'ERR_INVALID_PROXY',
        configFailure(
          `the environment variable ${variable} names a proxy of the type ${protocol}// that is ` +
            `not supported. Give one that speaks HTTP, or list the service's host in NO_PROXY.`,
        ),
      ),
    )
  const hostname = url.hostname.replace(/^\[|\]$/g, '')
  const port = Number(url.port) || (protocol === 'https:' ? 443 : 80)
  const user = url.username === '' && url.password === '' ? undefined : [url.username, url.password].map(unescape)
  return E.right({
    protocol,
    hostname,
    port,
    variable,
    label: `the proxy ${url.hostname}:${port} (${variable})`,
    ...defined({ authorization: user && `Basic ${Buffer.from(user.join(':')).toString('base64')}` }),
  })
}

/** True if an address, or a network such as 10.0.0.0/8, covers the address `host`. */
const coversAddress = (network: string, host: string): boolean => {
  const [address = '', bits] = network.replace(/[[\]]/g, '').split('/')
  const family = isIP(address)
  const longest = family === 4 ? 32 : 128
  const length = bits === undefined ? longest : /^\d{1,3}$/.test(bits) ? Number(bits) : Number.NaN
  if (family === 0 || family !== isIP(host) || !(length <= longest)) return false
  const list = new BlockList()
  list.addSubnet(address, length, family === 4 ? 'ipv4' : 'ipv6')
  return list.check(host, family === 4 ? 'ipv4' : 'ipv6')
}

/**
 * True if NO_PROXY excludes this host. As in curl, an entry covers a host and its subdomains, with or without a leading
 * dot; `*` covers all; addresses may be networks. Unlike in curl, an entry may end with a port or begin with `*.`.
 */
const isExempt = (noProxy: string, url: URL): boolean => {
  const host = url.hostname.replace(/^\[|\]$|\.$/g, '')
  const port = url.port || (url.protocol === 'https:' ? '443' : '80')
  return noProxy
    .toLowerCase()
    .split(/[\s,]+/)
    .some((entry) => {
      if (entry === '*') return true
      const [, name = entry, entryPort = port] = /^(\[.*\]|[^:]+):(\d+)$/.exec(entry) ?? []
      if (entryPort !== port) return false
      if (isIP(host)) return coversAddress(name, host)
      const suffix = name.replace(/^\*?\.+|\.+$/g, '')
      return suffix !== '' && (host === suffix || host.endsWith(`.${suffix}`))
    })
}

/** The proxy for an address according to the environment; undefined if none is used, as for this machine. */
export const findProxy = (env: ProxyVariables, url: URL): E.Either<ApiError, ProxyServer | undefined> => {
  const [variable, value] = firstVariable(env, [`${url.protocol.replace(':', '')}_proxy`, 'all_proxy'])
  const [, noProxy = ''] = firstVariable(env, ['no_proxy'])
  return variable === undefined || value === undefined || isLoopback(url.hostname) || isExempt(noProxy, url)
    ? E.right(undefined)
    : parseProxy(variable, value)
}

/** The error for a failed connection through a proxy; a config error if other settings would help. */
export const proxyConnectError = ({ label, variable }: ProxyServer, code: string, why: string): ApiError => {
  if (isTlsCode(code)) {
    const remedy =
      `Check its port, and that it speaks TLS; otherwise ${variable} begins with http://. If ` +
      'its certificate comes from an authority of your own, name that in NODE_EXTRA_CA_CERTS.'
    return proxyError(code, configFailure(`no secure connection to ${label} (${code}). ${remedy}`, why))
  }
  if (code.startsWith('HPE_'))
    return proxyError(
      code,
      configFailure(
        `${label} does not answer as an HTTP proxy (${code}). Check its ` +
          'port; a proxy that speaks TLS has an address with https://.',
        why,
      ),
    )
  const remedy = isUnreachableCode(code) ? `Check ${variable}, or run again later.` : 'Run again later.'
  return proxyError(code, transientFailure(`${label} gives no connection (${code}). ${remedy}`, why))
}

/** The proxy asks for a user name and password, or rejects the ones it got. */
export const proxyLoginError = (
  { label, variable, authorization }: ProxyServer,
  schemes: string | undefined,
): ApiError => {
  const hasBasic = schemes === undefined || /(^|,)\s*basic\b/i.test(schemes)
  const remedy = !hasBasic
    ? 'It does not accept Basic authentication, the only kind that is supported. Ask its operator.'
    : authorization === undefined
      ? `Put them into ${variable}: http://USER:PASSWORD@HOST:PORT.`
      : `Correct those in ${variable}; write special characters as in any URL, such as %40 for @.`
  const problem = authorization === undefined ? 'asks for' : 'refuses our'
  return proxyError('407', configFailure(`${label} ${problem} user name and password (407). ${remedy}`))
}

/** The error for a proxy's answer to CONNECT. Any answer but an empty 200 comes from the proxy itself. */
export const proxyAnswerError = (
  proxy: ProxyServer,
  target: string,
  status: number,
  schemes: string | undefined,
): ApiError => {
  if (status === 407) return proxyLoginError(proxy, schemes)
  const { label, variable } = proxy
  const code = String(status)
  if (status === 403)
    return proxyError(
      code,
      configFailure(`${label} refuses connections to ${target} (403). Ask its operator to allow them.`),
    )
  if ([408, 429].includes(status) || (status >= 500 && ![501, 505, 511].includes(status)))
    return proxyError(
      code,
      transientFailure(`${label} cannot connect to ${target} (${status}). Check that address, or run again later.`),
    )
  return proxyError(
    code,
    configFailure(
      `${label} answers ${status} and a page of its own instead of connecting to ${target}. ` +
        `It may want a log-in first, or ${variable} names no proxy: ask its operator.`,
    ),
  )
}

/**
 * TLS failed inside the proxy's tunnel. A wrong certificate is the service's; bytes other than TLS may be a page of the
 * proxy.
 */
export const tunnelTlsError = ({ label }: ProxyServer, target: string, code: string, why: string): ApiError =>
  isTlsProtocolCode(code)
    ? proxyError(
        code,
        configFailure(
          `what answers for ${target} through ${label} does not speak TLS with ` +
            `us (${code}). Check that address: its port may be one for http. ` +
            'Otherwise the proxy may have answered itself: ask its operator.',
          why,
        ),
      )
    : { _tag: 'Network', code, message: why }

/** The name used to check a proxy's certificate; none for an IP address. */
export const proxyServername = ({ hostname }: ProxyServer): string => (isIP(hostname) ? '' : hostname)
