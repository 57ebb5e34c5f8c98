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
