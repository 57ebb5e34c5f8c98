import type { Snapshot } from '../../connector/snapshot/store/database'
import { reviewSentimentsStream } from '../../connector/streams/review-children'
import { reviewsStream } from '../../connector/streams/reviews'
import { streamMessages, writeMessages } from './snapshot-messages'

/** A text that would run as a script wherever it is not escaped. */
export const hostileText = `"><script>throw 1</script><img src="https://example.com/x.png" onerror='throw 2'>&amp;`

const day = 86_400_000
const first = Date.parse('2024-03-05T08:00:00Z')
const iso = (time: number) => new Date(time).toISOString()
const pick = <A>(list: ReadonlyArray<A>, i: number): A => list[i % list.length] as A

const locations = ['North Clinic', 'South Clinic', 'Riverside Family Practice', 'Harbor Point Urgent Care', hostileText]
const categories = ['Access', 'Billing', 'Staff', hostileText]
const severities = ['low', 'medium', 'high']

/** The review of a number: two years of them, of five locations, some answered, some with a liability. */
const review = (i: number) => {
  const mentioned = first + Math.round(800 * Math.sqrt(i / 500)) * day
  const location = i % locations.length
  const level = 1 + (Math.floor(i / 6) % 3)
  return {
    id: 1000 + i,
    modifiedTime: iso(mentioned + 9 * day),
    mentionTime: iso(mentioned),
    rating: pick([5, 4, 5, 1, 4, 0, 5, 3, 2, 5, 1], i * i + location),
    reviewScore: (i % 11) / 2,
    location: { id: location + 1, name: locations[location] },
    source: { id: 1, name: 'Survey' },
    contents: [
      {
        id: 1,
        response: hostileText,
        sentiments: [0, 1].map((n) => ({
          id: n,
          category: pick(categories, i + n),
          tonality: pick(['positive', 'Negative', 'neutral', 'positive'], i * 3 + n),
        })),
        liabilities:
          i % 6 === 0
            ? [
                {
                  liabilityId: 1 + i,
                  severity: { level, name: severities[level - 1] },
                  categoryName: pick(['Negligence', 'Patient Rights', hostileText, 'Negligence'], i / 6),
                  justification: 'what a patient said',
                },
              ]
            : null,
      },
    ],
    engagements: i % 4 === 0 ? [{ engagement: hostileText, engagementTime: iso(mentioned + (1 + i) * 3_600_000) }] : [],
    taskDetails: { status: i % 12 === 0 ? 'completed' : 'pending' },
    unknown_attributes: i % 50 === 0 ? { [hostileText]: i } : null,
  }
}

/** 500 of these reviews and, as the source sends them too, their sentiments. */
export const fillReviews = async (snapshot: Snapshot): Promise<void> => {
  const all = Array.from({ length: 500 }, (_, i) => review(i))
  const sentiments = all.flatMap(({ id, modifiedTime, contents }) =>
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
    streamMessages({ ...reviewsStream, syncMode: 'incremental' }, ...all.map((row) => JSON.stringify(row))),
  )
  await writeMessages(
    snapshot,
    streamMessages(
      { ...reviewSentimentsStream, syncMode: 'incremental' },
      ...sentiments.map((row) => JSON.stringify(row)),
    ),
  )
}
