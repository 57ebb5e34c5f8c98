import {
  expectedModels,
  groupBy,
  id,
  list,
  type ModelRow,
  type ModelRows,
  namesOf,
  type OracleInput,
  parse,
  present,
  rounded,
  share,
  text,
} from './oracle'

/** The question types of the specification's reference lists by kind, each kind with the scales of its types. */
const typesByKind = {
  promoter: 'Promoter (Radio), Promoter Question (Radio)',
  number:
    'Age (Text Field), Follower Count (Text Field), Following Count (Text Field), Free Form (Rating), ' +
    'Friend Count (Text Field), Klout Score (Text Field), Review Count (Text Field), ' +
    'Single Choice (Number Slider), Single Choice (Rating), Single Choice (Slider)',
  date: 'Completion Date (Date Field), Job Hire Date (Text Field), Member Since (Text Field)',
  choice:
    'Age (Radio), Age Group (Select), Demographic Ethnicity (Select), Demographic Gender (Select), ' +
    'Demographic Language (Select), Ethnicity (Radio), Gender (Radio), Location (Radio), Location Info (Radio), ' +
    'Multiple Choice (Checkbox), New Patient (Radio), Physician (Radio), Procedure (Radio), Publish (Checkbox), ' +
    'Publishing Site Links (Radio), Referring Physician (Radio), Single Choice (Auto Complete), ' +
    'Single Choice (Auto Editable), Single Choice (Combo), Single Choice (Radio), State (Select)',
  text:
    'Address1 (Text Field), Address2 (Text Field), Address3 (Text Field), Author ID (Text Field), ' +
    'AvatarLink (Text Field), City (Text Field), Country (Text Field), County (Text Field), Email (Text Area), ' +
    'Email (Text Field), First Name (Text Field), Free Form (Text Area), Free Form (Text Field), ' +
    'Free From (Text Area), Free From (Text Field), Gender (Text Field), Instruction, Instructions, ' +
    'Job Discription (Text Field), Job Title (Text Field), Klout ID (Text Field), Language (Text Field), ' +
    'Last Name (Text Field), Location (Text Field), Name (Text Area), Name (Text Field), Phone (Text Field), ' +
    'Publishing Site Link, Screen name (Text Field), Source Path (Text Field), State (Text Field), ' +
    'Zip Code (Text Field)',
}

/** The kind of each type in lower case. */
export const kindsOfTypes: ReadonlyMap<string, string> = new Map(
  Object.entries(typesByKind).flatMap(([kind, types]) =>
    types.split(', ').map((type) => [type.toLowerCase(), kind] as const),
  ),
)

const trimmed = (value: string): string => value.replace(/^ +| +$/g, '')
const scaleOfType = (type: string): readonly [number, number] | undefined =>
  kindsOfTypes.get(type) === 'promoter'
    ? [0, 10]
    : ['single choice (rating)', 'free form (rating)'].includes(type)
      ? [1, 5]
      : undefined

/** A text that has more than spaces, as it came. */
const named = (value: unknown): string | null => {
  const found = text(value)
  return found === null || trimmed(found) === '' ? null : found
}
const escape = (value: string | null): string => (value ?? '').split('>').join('>>')
const questionIdOf = (code: string | null, question: string | null, type: string | null): string | null => {
  if (code !== null) return escape(code)
  if (question === null && type === null) return null
  return `> ${escape(question)}${type === null ? '' : ` > ${escape(type)}`}`
}

const numberIn = (answer: string): number | null =>
  /^-?\d{1,15}(\.\d{1,15})?$/.test(answer) && !answer.endsWith('\n') ? Number(answer) : null

/** The day of an ISO 8601 date, alone or before a time. */
const dateIn = (answer: string): string | null => {
  const [, day] =
    /^([1-9]\d{3}-\d\d-\d\d)(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[-+]\d\d:?\d\d)?)?$/.exec(answer) ?? []
  if (day === undefined) return null
  const at = new Date(`${day}T00:00:00Z`)
  return !Number.isNaN(at.getTime()) && at.toISOString().startsWith(day) ? day : null
}

type Answer = ReturnType<typeof readAnswers>[number]
const readAnswers = (input: OracleInput) => {
  const scaled = new Set((input.scales ?? []).map(({ question_id }) => trimmed(question_id)))
  return input.reviews.flatMap(({ json }) => {
    const review = parse(json)
    return (Array.isArray(review.contents) ? review.contents : []).flatMap((item, position) => {
      const [content] = list([item])
      const response = trimmed(text(content?.response) ?? '')
      if (content === undefined || response === '') return []
      const [question_code, question, question_type] = [
        named(content.questionCode),
        named(content.question),
        named(content.questionType),
      ]
      const question_id = questionIdOf(question_code, question, question_type)
      const kind = kindsOfTypes.get(trimmed(question_type ?? '').toLowerCase()) ?? null
      const isNumber =
        kind === 'promoter' || kind === 'number' || (question_id !== null && scaled.has(trimmed(question_id)))
      const answer_number = isNumber ? numberIn(response) : null
      const answer_date = kind === 'date' ? dateIn(response) : null
      const isRead = isNumber ? answer_number !== null : kind === 'date' ? answer_date !== null : kind !== null || null
      return [
        {
          review_id: id(review.id),
          content_id: id(content.id),
          position,
          question_id,
          question_code,
          question,
          question_type,
          kind,
          answer: response,
          answer_number,
          answer_date,
          answer_choice: kind === 'choice' ? response : null,
          parsed: isRead === null ? null : Number(isRead),
        },
      ]
    })
  })
}

/** A question with its scale, and why it is in no figure. */
const readScale = (
  answers: ReadonlyArray<Answer>,
  facts: ReadonlyMap<unknown, ModelRow>,
  { scales = [] }: OracleInput,
) => {
  const wordingOf = (answer: Answer) => [answer.question ?? '', answer.question_type ?? '']
  const [newest] = [...answers].sort((a, b) => {
    const [first, second] = [a, b].map(({ review_id }) => String(facts.get(review_id)?.modified_time))
    if (first !== second) return String(first) < String(second) ? 1 : -1
    return JSON.stringify(wordingOf(a)) < JSON.stringify(wordingOf(b)) ? -1 : 1
  })
  const { question_id = null, question = null, question_type = null, kind = null } = newest ?? {}
  const given = scales.filter((scale) => trimmed(scale.question_id) === trimmed(question_id ?? ''))
  const [ofType0, ofType1] = scaleOfType(trimmed(question_type ?? '').toLowerCase()) ?? [null, null]
  const [lowest, highest] = given[0] === undefined ? [ofType0, ofType1] : [given[0].lowest, given[0].highest]
  const best = given[0]?.best ?? highest
  const numbers = present(answers.map(({ answer_number }) => answer_number))
  const fits = numbers.filter(
    (number) =>
      lowest !== null &&
      highest !== null &&
      number >= lowest &&
      number <= highest &&
      (kind !== 'promoter' || Number.isInteger(number)),
  ).length
  const gap =
    lowest === null
      ? 'no scale is known'
      : fits < answers.length
        ? `${answers.length - fits} of ${answers.length} answers do not fit the scale`
        : null
  const isNps = lowest === 0 && highest === 10 && best === 10
  const parsed = present(answers.map(({ parsed }) => parsed))
  const total = parsed.reduce((sum, one) => sum + one, 0)
  return {
    question_id,
    question,
    question_type,
    kind,
    answers: answers.length,
    parsed: parsed.length === 0 ? null : total,
    share_parsed: parsed.length === 0 ? null : share(total, answers.length),
    lowest_answer: numbers.length === 0 ? null : Math.min(...numbers),
    highest_answer: numbers.length === 0 ? null : Math.max(...numbers),
    lowest,
    highest,
    best,
    gap,
    nps_gap: kind !== 'promoter' ? 'no promoter question' : (gap ?? (isNps ? null : 'the scale is not 0 to 10')),
  }
}

const monthsBetween = (first: string, last: string): ReadonlyArray<string> => {
  const months = [first]
  for (let month = first; month < last; months.push(month)) {
    const [year = 0, number = 0] = month.split('-').map(Number)
    month = `${number === 12 ? year + 1 : year}-${String((number % 12) + 1).padStart(2, '0')}-01`
  }
  return months
}

const z = 1.96

/** Wilson's interval of a share: the solutions of |part - p| = z √(p (1 - p) / n). */
const wilson = (successes: number, n: number): readonly [number, number] => {
  const part = successes / n
  const [a, b, c] = [1 + z ** 2 / n, -(2 * part + z ** 2 / n), part ** 2]
  const root = Math.sqrt(Math.max(0, b ** 2 - 4 * a * c))
  return [(-b - root) / (2 * a), (-b + root) / (2 * a)]
}

/** The adjusted Wald interval of a net promoter score, from -1 to 1. */
const adjustedWald = (promoters: number, passives: number, detractors: number): readonly [number, number] => {
  const n = promoters + passives + detractors + 3
  const counts = [
    [1, promoters + 0.75],
    [0, passives + 1.5],
    [-1, detractors + 0.75],
  ] as const
  const mean = counts.reduce((sum, [value, count]) => sum + (value * count) / n, 0)
  const variance = counts.reduce((sum, [value, count]) => sum + ((value - mean) ** 2 * count) / n, 0)
  const margin = z * Math.sqrt(variance / n)
  return [Math.max(-1, mean - margin), Math.min(1, mean + margin)]
}

/** What the models about questions and their answers must say. */
export const expectedAnswers = (input: OracleInput): ModelRows => {
  const minAnswers = input.minAnswers ?? 10
  const reviews = expectedModels(input).review_facts as ReadonlyArray<ModelRow>
  const facts = new Map(reviews.map((row) => [row.review_id, row]))
  const allMonths = [...present(reviews.map(({ month }) => text(month)))].sort()
  const months = allMonths.length === 0 ? [] : monthsBetween(allMonths[0] ?? '', allMonths.at(-1) ?? '')
  const answers = readAnswers(input)
  const asked = answers.filter(({ question_id }) => question_id !== null)
  const scales = groupBy(asked, ({ question_id }) => [question_id]).map((group) => readScale(group, facts, input))
  const scaleOf = new Map(scales.map((scale) => [scale.question_id, scale]))
  const keys: Readonly<Record<string, (row: ModelRow) => string | null>> = {
    all: () => null,
    region: ({ region }) => text(region),
    location: ({ location_id }) => text(location_id),
    provider: ({ provider_id }) => text(provider_id),
    source: ({ source_id }) => text(source_id),
  }
  const nameIn = (scope: 'location' | 'provider' | 'source') =>
    namesOf(reviews as never, `${scope}_id`, `${scope}_name`) as (key: unknown) => string | null
  const names: Readonly<Record<string, (key: string | null) => string | null>> = {
    all: () => null,
    region: (key) => key,
    location: nameIn('location'),
    provider: nameIn('provider'),
    source: nameIn('source'),
  }
  const counted = asked.flatMap((answer) => {
    const scale = scaleOf.get(answer.question_id)
    const month = text(facts.get(answer.review_id)?.month)
    return scale === undefined || scale.gap !== null || month === null ? [] : [{ answer, scale, month }]
  })
  const cells = Object.entries(keys).flatMap(([scope, keyOf]) => {
    const keyOfAnswer = ({ answer }: (typeof counted)[number]) => keyOf(facts.get(answer.review_id) ?? {})
    return groupBy(counted, (one) => [keyOfAnswer(one), one.scale.question_id]).flatMap((group) => {
      const [one] = group
      if (one === undefined) return []
      const first = [...group.map(({ month }) => month)].sort()[0] ?? ''
      const key = keyOfAnswer(one)
      const name = key === null ? null : (names[scope]?.(key) ?? null)
      return months
        .filter((month) => month >= first)
        .map((month) => {
          const numbers = group.flatMap((each) => (each.month === month ? [Number(each.answer.answer_number)] : []))
          return { scope, key, name, scale: one.scale, month, numbers }
        })
    })
  })
  const gapOf = (n: number): string | null =>
    n === 0 ? 'no answers' : n < minAnswers ? `fewer than ${minAnswers} answers` : null
  const count = (numbers: ReadonlyArray<number>, test: (number: number) => boolean) => numbers.filter(test).length
  return {
    months: months.map((month) => ({ month })),
    review_answers: answers,
    question_scales: scales,
    answers_monthly: cells.map(({ scope, key, name, scale, month, numbers }) => ({
      ...{ scope, key, name, question_id: scale.question_id, question: scale.question, best: scale.best, month },
      answers: numbers.length,
      best_answers: count(numbers, (number) => number === scale.best),
      promoters: scale.nps_gap === null ? count(numbers, (number) => number > 8) : null,
      detractors: scale.nps_gap === null ? count(numbers, (number) => number < 7) : null,
    })),
    nps_monthly: cells.flatMap(({ scope, key, name, scale, month, numbers }) => {
      if (scale.nps_gap !== null) return []
      const [promoters, detractors] = [count(numbers, (number) => number > 8), count(numbers, (number) => number < 7)]
      const passives = numbers.length - promoters - detractors
      const gap = gapOf(numbers.length)
      const [low, high] = adjustedWald(promoters, passives, detractors)
      const shown = (value: number) => (gap === null ? rounded(100 * value, 1) : null)
      return [
        {
          ...{ scope, key, name, question_id: scale.question_id, question: scale.question, month },
          ...{ answers: numbers.length, promoters, passives, detractors },
          ...{ nps: shown((promoters - detractors) / numbers.length), nps_low: shown(low), nps_high: shown(high), gap },
        },
      ]
    }),
    top_box_monthly: cells.map(({ scope, key, name, scale, month, numbers }) => {
      const gap = gapOf(numbers.length)
      const best_answers = count(numbers, (number) => number === scale.best)
      const [low, high] = wilson(best_answers, numbers.length)
      const shown = (value: number) => (gap === null ? rounded(value, 2) : null)
      return {
        ...{ scope, key, name, question_id: scale.question_id, question: scale.question, best: scale.best, month },
        ...{ answers: numbers.length, best_answers, share_best: shown(best_answers / numbers.length) },
        ...{ share_low: shown(low), share_high: shown(high), gap },
      }
    }),
  }
}
