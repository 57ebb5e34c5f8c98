/** The value, or `undefined` if the signal comes first. No race of promises: one that outlives the value would hold it. */
export const awaitUntilAbort = <A>(stop: AbortSignal, value: Promise<A>): Promise<A | undefined> =>
  new Promise((resolve, reject) => {
    const onStop = () => resolve(undefined)
    const leave = () => stop.removeEventListener('abort', onStop)
    stop.addEventListener('abort', onStop)
    if (stop.aborted) onStop()
    value.then(resolve, reject).finally(leave)
  })

/** The items of `input` until the signal. */
export async function* takeUntilAbort<A>(stop: AbortSignal, input: AsyncIterable<A>): AsyncIterable<A> {
  const items = input[Symbol.asyncIterator]()
  for (;;) {
    const next = await awaitUntilAbort(stop, items.next())
    if (next === undefined || next.done === true || stop.aborted) return
    yield next.value
  }
}

/** The items of `source` until `signal` is aborted, which also ends a wait for the next one. */
export async function* takeUntilSignal<A>(signal: AbortSignal, source: AsyncIterable<A>): AsyncIterable<A> {
  const iterator = source[Symbol.asyncIterator]()
  for (;;) {
    const next = await awaitNext(signal, iterator)
    if (next === undefined || next.done === true) return
    yield next.value
  }
}

const awaitNext = <A>(signal: AbortSignal, iterator: AsyncIterator<A>): Promise<IteratorResult<A> | undefined> =>
  new Promise((resolve, reject) => {
    const onAbort = () => resolve(undefined)
    if (signal.aborted) return onAbort()
    signal.addEventListener('abort', onAbort, { once: true })
    iterator
      .next()
      .then(resolve, reject)
      .finally(() => signal.removeEventListener('abort', onAbort))
  })
