/** Rows under their head, in columns as wide as they need to be; numbers to the right. No line ends in blanks. */
export const formatTable = (head: ReadonlyArray<string>, rows: ReadonlyArray<ReadonlyArray<string>>): string => {
  const isNumeric = head.map((_, i) => rows.length > 0 && rows.every((row) => /^(-?[\d,.]+)?$/.test(row[i] ?? '')))
  const widths = head.map((title, i) => Math.max(title.length, ...rows.map((row) => (row[i] ?? '').length)))
  const lineOf = (cells: ReadonlyArray<string>) =>
    `${cells
      .map((cell, i) => (isNumeric[i] ? cell.padStart(widths[i] ?? 0) : cell.padEnd(widths[i] ?? 0)))
      .join('  ')
      .trimEnd()}\n`
  return [head, ...rows].map(lineOf).join('')
}
