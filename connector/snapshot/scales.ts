import { decodeCsv, readCsvFile } from './csv'
import type { Scale } from './store/models'

const columnNames = ['question_id', 'lowest', 'highest', 'best'] as const

/**
 * Reads a file of scales: CSV with a header, separated by commas, semicolons or tabs. Rejects with a `CommandError`
 * that names the line.
 */
export const readScales = async (path: string): Promise<ReadonlyArray<Scale>> =>
  decodeScales(path, await readCsvFile(path))

export const decodeScales = (path: string, text: string): ReadonlyArray<Scale> => {
  const { names, lines, fail } = decodeCsv(path, text, columnNames)
  if (!['question_id', 'lowest', 'highest'].every((name) => names.includes(name)))
    fail(
      ': the first line must name the columns question_id, lowest and highest, ' +
        `and may name best; it has ${names.length === 0 ? 'none' : names.join(', ')}.`,
    )
  const linesById = new Map<string, number>()
  return lines.map(({ number, cell }): Scale => {
    const where = `, line ${number}: `
    const question_id = cell('question_id') ?? fail(`${where}question_id is empty.`)
    const readNumber = (name: 'lowest' | 'highest' | 'best'): number | null => {
      const digits = cell(name)
      if (digits !== null && !/^-?\d{1,15}(\.\d{1,15})?$/.test(digits))
        fail(`${where}${name} must be a number such as 5 or 0.5, not ${digits}.`)
      return digits === null ? null : Number(digits)
    }
    const lowest = readNumber('lowest') ?? fail(`${where}lowest is empty.`)
    const highest = readNumber('highest') ?? fail(`${where}highest is empty.`)
    const best = readNumber('best')
    if (lowest >= highest) fail(`${where}lowest must be below highest.`)
    if (best !== null && (best < lowest || best > highest)) fail(`${where}best must lie on the scale.`)
    const earlier = linesById.get(question_id)
    if (earlier !== undefined) fail(`${where}${question_id} stands in line ${earlier} too. Give it one scale.`)
    linesById.set(question_id, number)
    return { question_id, lowest, highest, best }
  })
}
