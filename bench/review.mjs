const words = `the staff were kind and took time to explain what would happen next but we waited far too long in a room
without windows parking was easy my doctor listened carefully answered every question and called the day after billing
remained unclear until a nurse helped us “really” wonderful café señora naïve 😀 clean quiet modern rude cold
late`.split(/\s+/)
const cities = ['Springfield', 'Riverside', 'Fairview', 'Georgetown', 'Clinton', 'Salem', 'Madison', 'Córdoba']
const people = ['Amelia Hart', 'Noah Brandt', 'Zoë Okafor', 'Luis Peña', 'Grace Lin', 'Omar Haddad', 'Ivy Stone']
const features = ['staff', 'wait time', 'billing', 'cleanliness', 'communication', 'parking']
const sources = ['Google', 'Survey', 'Healthgrades', 'Facebook']
const start = Date.UTC(2025, 0, 1)

/** A linear congruential generator: the same reviews at every run. */
const seeded = (seed) => () => {
  seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0
  return seed / 2 ** 32
}

/** One review of about 3 KB, in the order and with the attributes of an export; `id` is written by the server. */
export const review = (index, id) => {
  const random = seeded(index + 1)
  const pick = (list) => list[Math.floor(random() * list.length)]
  const text = (length) => Array.from({ length }, () => pick(words)).join(' ')
  const time = new Date(start + index * 61_000).toISOString()
  const sentiment = (n) => ({
    id: index * 100 + n,
    reviewId: id,
    feature: pick(features),
    opinion: text(3),
    score: Math.round(random() * 50) / 10,
    category: pick(features),
    subCategory: text(1),
    tonality: pick(['negative', 'positive', 'neutral']),
  })
  const content = (n) => ({
    id: index * 10 + n,
    question: `How was ${text(5)}?`,
    response: n === 0 ? `"${text(42)}"\n${text(20)}` : text(8),
    questionType: pick(['Free Form (Text Area)', 'Single Choice (Rating)', 'Promoter (Radio)']),
    questionCode: `Q${index % 977}-${n}`,
    noOfSentiments: n === 0 ? 5 : 0,
    ...(n > 0
      ? {}
      : {
          overallCommentSentiment: { score: 1 + Math.round(random() * 40) / 10, label: 'Positive' },
          sentiments: [0, 1, 2, 3, 4].map(sentiment),
          liabilities:
            index % 20 > 0
              ? []
              : [
                  {
                    liabilityId: index,
                    severity: { level: 2, name: 'medium' },
                    categoryName: 'Negligence',
                    justification: text(12),
                  },
                ],
        }),
  })
  return {
    id,
    surveyBarCode: `SBC${index.toString(36).padStart(9, '0')}`,
    location: { id: 1000 + (index % 211), name: `${pick(cities)} Medical Center` },
    provider: { id: 5000 + (index % 89), name: `Dr. ${pick(people)}`, npi: `1${String(index % 89).padStart(9, '0')}` },
    source: { id: 1 + (index % 4), name: sources[index % 4] },
    avatar: { id: 1000 + (index % 211), name: pick(cities), type: 'Hospital' },
    mentionTime: time,
    modifiedTime: new Date(Date.parse(time) + 3_600_000).toISOString(),
    rating: index % 6,
    reviewScore: Math.round(random() * 50) / 10,
    contents: [0, 1, 2, 3, 4].map(content),
    taskDetails: {
      id: index,
      status: index % 3 === 0 ? 'pending' : 'completed',
      ownerEmail: 'owner@example.org',
      ownerName: pick(people),
      closureComment: text(10),
    },
    visitRecordId: index % 2 === 0 ? '' : `V${index}`,
    brand: [{ id: 7, name: 'Northwind Health' }],
    engagement: [{ engagement: text(20), engagementTime: time }],
  }
}
