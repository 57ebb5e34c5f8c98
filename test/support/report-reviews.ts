import type { Snapshot } from '../../connector/snapshot/store/database'
import { reviewSentimentsStream } from '../../connector/streams/review-children'
import { reviewsStream } from '../../connector/streams/reviews'
import { streamMessages, writeMessages } from './snapshot-messages'

/** A text that runs as a script if it is not escaped. */
export const hostileText = `"><script>throw 1</script><img src="https://example.com/x.png" onerror='throw 2'>&amp;`

const dayMillis = 86_400_000
const firstMention = Date.parse('2024-03-05T08:00:00Z')
const toIso = (time: number) => new Date(time).toISOString()
const pickItem = <A>(list: ReadonlyArray<A>, i: number): A => list[i % list.length] as A

const locations = ['North Clinic', 'South Clinic', 'Riverside Family Practice', 'Harbor Point Urgent Care', hostileText]
const categories = ['Access', 'Billing', 'Staff', hostileText]
const severities = ['low', 'medium', 'high']
const owners = ['Ada Moreau', 'Bo Lindqvist', hostileText, null]
const sources = ['Survey', 'Search engine', hostileText]

/** Review number `i` of two years of reviews at five locations, some with an answer, some with a liability. */
const createReview = (i: number) => {
  const mentioned = firstMention + Math.round(800 * Math.sqrt(i / 500)) * dayMillis
  const location = i % locations.length
  const level = 1 + (Math.floor(i / 6) % 3)
  return {
    id: 1000 + i,
    modifiedTime: toIso(mentioned + 9 * dayMillis),
    mentionTime: toIso(mentioned),
    rating: pickItem([5, 4, 5, 1, 4, 0, 5, 3, 2, 5, 1], i * i + location),
    reviewScore: (i % 11) / 2,
    location: { id: location + 1, name: locations[location] },
    provider: i % 2 === 0 ? { id: 1 + (i % 4), name: `Provider ${i % 4}`, npi: String(1_000_000_000 + (i % 4)) } : null,
    source: { id: 1 + (i % 3), name: pickItem(sources, i) },
    contents: [
      {
        id: 1,
        response: hostileText,
        sentiments: [0, 1].map((n) => ({
          id: n,
          category: pickItem(categories, i + n),
          subCategory: pickItem(['Waiting', 'Price'], i),
          score: (i % 11) / 2,
          tonality: pickItem(['positive', 'Negative', 'neutral', 'positive'], i * 3 + n),
        })),
        liabilities:
          i % 6 === 0
            ? [
                {
                  liabilityId: 1 + i,
                  severity: { level, name: severities[level - 1] },
                  categoryName: pickItem(['Negligence', 'Patient Rights', hostileText, 'Negligence'], i / 6),
                  justification: 'what a patient said',
                },
              ]
            : null,
      },
      {
        ...{ id: 2, response: String(i % 11), question: 'Would you recommend us?', questionType: 'Promoter (Radio)' },
        ...{ sentiments: [], liabilities: null },
      },
    ],
    engagements:
      i % 4 === 0 ? [{ engagement: hostileText, engagementTime: toIso(mentioned + (1 + i) * 3_600_000) }] : [],
    taskDetails: {
      id: 5000 + i,
      status: i % 12 === 0 ? 'completed' : 'pending',
      ownerName: pickItem(owners, i),
      ownerEmail: pickItem(owners, i) === null ? null : `owner.${i % 4}@example.org`,
    },
    unknown_attributes: i % 50 === 0 ? { [hostileText]: i } : null,
  }
}

/** Writes 500 of these reviews and, as the source does, their sentiments as a stream. */
export const fillReviews = async (snapshot: Snapshot): Promise<void> => {
  const reviews = Array.from({ length: 500 }, (_, i) => createReview(i))
  const sentiments = reviews.flatMap(({ id, modifiedTime, contents }) =>
    contents.flatMap((content) =>
      content.sentiments.map((sentiment) => ({
        reviewId: id,
        reviewModifiedTime: modifiedTime,
        contentId: content.id,
        ...sentiment,
      })),
    ),
  )
  await writeMessages(
    snapshot,
    streamMessages({ ...reviewsStream, syncMode: 'incremental' }, ...reviews.map((row) => JSON.stringify(row))),
  )
  await writeMessages(
    snapshot,
    streamMessages(
      { ...reviewSentimentsStream, syncMode: 'incremental' },
      ...sentiments.map((row) => JSON.stringify(row)),
    ),
  )
}
