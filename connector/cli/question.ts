import { usageError } from '../cdk'
import {
  type FilterValues,
  findQuestion,
  type Question,
  type QuestionFilter,
  questionFilters,
  questions,
  suggestQuestion,
} from '../snapshot'

/** The filters of a question. The last option applies to any query. */
export const questionOptions = {
  region: { type: 'string', value: 'NAME', help: 'With a question: only this region' },
  location: { type: 'string', value: 'ID|NAME', help: 'With a question: only this location' },
  source: { type: 'string', value: 'ID|NAME', help: 'With a question: only this source' },
  provider: { type: 'string', value: 'ID|NAME', help: 'With a question: only this provider' },
  owner: { type: 'string', value: 'NAME|MAIL', help: 'With a question: only tasks of this owner' },
  month: { type: 'string', value: 'YYYY-MM', help: 'With a question: only this month' },
  limit: { type: 'string', value: 'N', help: 'At most this many rows' },
} as const

/** True for a single word, which is the name of a question. SQL has more than one word. */
export const isName = (text: string): boolean => /^[\w-]+$/.test(text)

/** True if a text has no statement, only comments and semicolons. */
export const isBlank = (text: string): boolean => text.replaceAll(/--.*|\/\*[\s\S]*?\*\/|[;\s]/g, '') === ''

export const decodeLimit = (text: string | undefined): number | undefined => {
  if (text !== undefined && !/^[1-9]\d{0,14}$/.test(text))
    throw usageError(`--limit must be a whole number of at least 1, such as 20, not ${text}.`)
  return text === undefined ? undefined : Number(text)
}

export const requireQuestion = (name: string): Question => {
  const question = findQuestion(name)
  if (question !== undefined) return question
  throw usageError(
    `There is no question ${name}.${suggestQuestion(name)} feedback ` +
      `query --list prints them; the rows of a table are "FROM ${name}".`,
  )
}

export const decodeFilters = (
  options: {
    readonly [K in QuestionFilter]: string | undefined
  },
  text: string,
): FilterValues => {
  const given = questionFilters.filter((filter) => options[filter] !== undefined)
  if (options.month !== undefined && !/^\d{4}-(0[1-9]|1[0-2])$/.test(options.month))
    throw usageError(`--month must be a month such as 2026-10, not ${options.month}.`)
  if (!isName(text)) {
    if (given.length > 0) throw usageError(`--${given[0]} needs a named question. In SQL, use WHERE.`)
    return {}
  }
  const { name, filters } = requireQuestion(text)
  const wrong = given.find((filter) => !filters.includes(filter))
  if (wrong !== undefined) {
    const known = filters.length === 0 ? 'It has no filters' : `Its filters are ${formatFilters(filters, ', ')}`
    throw usageError(`${name} has no filter --${wrong}. ${known}.`)
  }
  return Object.fromEntries(given.map((filter) => [filter, options[filter]]))
}

const formatFilters = (filters: ReadonlyArray<string>, separator: string): string =>
  filters.map((filter) => `--${filter}`).join(separator)

/** The questions with their filters, in lines that fit a narrow terminal. */
export const formatQuestions = (): string => {
  const width = Math.max(...questions.map(({ name }) => name.length)) + 4
  const formatQuestion = ({ name, description, filters, example }: Question) =>
    [
      description,
      ...(filters.length === 0 ? [] : [formatFilters(filters, ' ')]),
      ...(example === undefined ? [] : [`feedback query --db FILE ${example}`]),
    ]
      .map((line, i) => `${(i === 0 ? `  ${name}` : '').padEnd(width)}${line}\n`)
      .join('')
  const [models, others] = [true, false].map((isModel) =>
    questions.filter(({ name, view }) => (name === view) === isModel).map(formatQuestion),
  )
  return [
    'Questions, each with its filters:\n',
    ...(others ?? []),
    '\nModels, printed with all rows:\n',
    ...(models ?? []),
    '\nEach takes --regions, --scales, --limit and --format too, ' +
      'as in feedback query --db FILE task-ageing --limit 10.\n',
  ].join('')
}
