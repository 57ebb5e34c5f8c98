/** Something that waits to be sent; `at`: since when, milliseconds. */
export type BatchItem = { readonly key: string; readonly bytes: number; readonly at: number }

/** When a batch is full. */
export type BatchSize = { readonly count: number; readonly bytes: number }

/**
 * The next batch and what stays. An item waits while its key is in `busy`, in the batch or before it in the pool, so that the
 * items of one key are sent one after the other. Unless `ripe`, only a full batch leaves; none at all is an empty one.
 */
export const takeBatch = <W extends BatchItem>(
  pool: ReadonlyArray<W>,
  size: BatchSize,
  busy: ReadonlySet<string>,
  ripe: boolean,
): { readonly batch: ReadonlyArray<W>; readonly rest: ReadonlyArray<W> } => {
  const batch: Array<W> = []
  const rest: Array<W> = []
  const seen = new Set<string>()
  let bytes = 0
  let full = false
  for (const item of pool) {
    const blocked = full || busy.has(item.key) || seen.has(item.key)
    if (!full) seen.add(item.key)
    if (blocked) rest.push(item)
    else if (batch.length > 0 && bytes + item.bytes > size.bytes) {
      full = true
      rest.push(item)
    } else {
      batch.push(item)
      bytes += item.bytes
      full = batch.length >= size.count || bytes >= size.bytes
    }
  }
  return full || ripe ? { batch, rest } : { batch: [], rest: pool }
}
