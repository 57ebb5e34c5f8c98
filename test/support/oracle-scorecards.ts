import {
  estimates,
  expectedModels,
  groupBy,
  id,
  list,
  type ModelRows,
  mean,
  median,
  namesOf,
  number,
  type OracleInput,
  object,
  parse,
  present,
  rounded,
  share,
  text,
} from './oracle'

type Row = Readonly<Record<string, string | number | null>>

/** The day of a review; null for one that is in no month. */
const dayIn = (timeZone: string): ((row: Row) => string | null) => {
  const format = new Intl.DateTimeFormat('sv', { timeZone, dateStyle: 'short' })
  return ({ month, mention_time }) => (month === null ? null : format.format(Date.parse(String(mention_time))))
}

/** What the scorecards must say, computed as `expectedModels` computes the marts. */
export const expectedScorecards = (input: OracleInput): ModelRows => {
  const facts = expectedModels(input).review_facts as ReadonlyArray<Row>
  const dayOf = dayIn(input.timeZone)
  const factsById = new Map(facts.map((row) => [row.review_id, row]))
  const liabilities = input.reviews.flatMap(({ json }) => {
    const review = parse(json)
    const row = factsById.get(id(review.id))
    if (row === undefined || row.closed_task === 1) return []
    return list(review.contents).flatMap((content) =>
      list(content.liabilities).map((liability) => ({
        liability_id: id(liability.liabilityId),
        review_id: row.review_id ?? null,
        content_id: id(content.id),
        category: text(liability.categoryName),
        severity_level: number(object(liability.severity).level),
        severity: text(object(liability.severity).name),
        justification: text(liability.justification),
        location_id: row.location_id ?? null,
        location_name: row.location_name ?? null,
        provider_name: row.provider_name ?? null,
        mention_time: row.mention_time ?? null,
        task_status: row.task_status ?? null,
        task_owner: row.owner_name ?? null,
      })),
    )
  })
  const numbers = (rows: ReadonlyArray<(typeof facts)[number]>, name: string) =>
    rows.map((row) => (row[name] ?? null) as number | null)
  const averages = (rows: typeof facts) => ({
    reviews: rows.length,
    rated: present(numbers(rows, 'rating')).length,
    average_rating: rounded(mean(numbers(rows, 'rating')), 2),
    average_score: rounded(mean(numbers(rows, 'review_score')), 2),
  })
  const names = namesOf(facts as never, 'location_id', 'location_name')
  const located = facts.filter((row) => row.location_id !== null)
  return {
    review_daily: groupBy(facts, (row) => [dayOf(row), row.source_name ?? null]).map((rows) => ({
      day: rows[0] === undefined ? null : dayOf(rows[0]),
      source_name: rows[0]?.source_name ?? null,
      ...averages(rows),
      negative: rows.filter(({ sentiment }) => sentiment === 'negative').length,
    })),
    open_liabilities: liabilities,
    location_scorecard: groupBy(located, (row) => [row.location_id ?? null]).map((rows) => ({
      location_id: rows[0]?.location_id ?? null,
      location_name: names(rows[0]?.location_id ?? null),
      ...averages(rows),
      ...estimates(present(numbers(rows, 'rating')), present(numbers(facts, 'rating'))),
      answered: share(rows.filter((row) => row.first_response_time !== null).length, rows.length),
      median_hours_to_answer: rounded(median(numbers(rows, 'hours_to_answer')), 1),
      open_liabilities: liabilities.filter((one) => one.location_id === rows[0]?.location_id).length,
      last_mention: [...present(rows.map((row) => row.mention_time as string | null))].reduce<string | null>(
        (last, time) => (last === null || time > last ? time : last),
        null,
      ),
    })),
  }
}
