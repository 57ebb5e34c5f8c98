/**
 * The value, or `undefined` if the signal comes first. Promise.race would keep the value in memory until the signal
 * comes.
 */
export const awaitUntilAbort = <A>(signal: AbortSignal, value: Promise<A>): Promise<A | undefined> =>
  new Promise((resolve, reject) => {
    const onAbort = () => resolve(undefined)
    signal.addEventListener('abort', onAbort)
    if (signal.aborted) onAbort()
    value.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort))
  })

/** The items of `input` until the signal, which also interrupts a wait for the next item. */
export async function* takeUntilAbort<A>(signal: AbortSignal, input: AsyncIterable<A>): AsyncIterable<A> {
  const items = input[Symbol.asyncIterator]()
  while (!signal.aborted) {
    const next = await awaitUntilAbort(signal, items.next())
    if (next === undefined || next.done === true || signal.aborted) return
    yield next.value
  }
}
