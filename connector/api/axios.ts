import type * as Axios from 'axios'

/** Globals that axios looks at as it is loaded, for a way over the wire that is not ours. */
const hiddenGlobals = ['fetch', 'Request', 'Response', 'FormData', 'Headers']

/** Node loads all of its fetch, four megabytes and twenty milliseconds, for whoever looks at one of them. */
const loadWithoutFetch = <A>(load: () => A): A => {
  const hidden = hiddenGlobals.map((name) => [name, Object.getOwnPropertyDescriptor(globalThis, name)] as const)
  for (const [name] of hidden)
    Object.defineProperty(globalThis, name, { value: undefined, configurable: true, writable: true })
  try {
    return load()
  } finally {
    for (const [name, descriptor] of hidden)
      if (descriptor !== undefined) Object.defineProperty(globalThis, name, descriptor)
  }
}

/** The HTTP library. */
export const { default: axios, AxiosHeaders } = loadWithoutFetch((): typeof Axios => require('axios'))
