const splitNames = (names: string): ReadonlyArray<string> => names.split(', ')

/** Names of generated people, locations, regions and brands; the generator combines them by number. */
export const firstNames = splitNames(
  'Amara, Benjamin, Chloé, Dmitri, Elena, Farid, Grace, Hiroshi, Ingrid, José, Katarzyna, ' +
    'Liam, Mei, Nadia, Oluwaseun, Priya, Quentin, Rosa, Søren, Tamar, Uma, Viktor, Wanjiru, Zoe',
)

export const lastNames = splitNames(
  "Okafor, Lindqvist, O'Brien, García, Nakamura, Petrov, Haddad, Schmidt, Nguyen, Kowalski, Rossi, Abebe, " +
    'Johnson, Singh, Moreau, Castellanos, Young, Fernández, Baker, Cohen, Takahashi, Müller, Adeyemi',
)

export const townNames = splitNames(
  'Riverside, Oak Hill, Lakeview, Maple Grove, Cedar Park, Harbor Point, Mesa Verde, Northgate, ' +
    'Stonebridge, Willow Creek, Eastport, Pine Ridge, Fairmont, Bayside, Summit, Glenwood, Kingsway',
)

export const regionNames = splitNames('North Region, South Region, East Region, West Region, Central Region')
export const brandNames = splitNames('Evergreen Health, Blue Harbor Care')

/** Kinds of locations, each with its avatar type from the service's reference lists. */
export const locationKinds: ReadonlyArray<readonly [kind: string, avatarType: string]> = [
  ['Medical Center', 'Hospital'],
  ['Family Practice', 'Practice'],
  ['Orthopedics', 'Specialty'],
  ['Pediatrics', 'Department'],
  ['Urgent Care', 'Location'],
]

/** The sources of reviews; the reviews of the first one are surveys. */
export const reviewSources: ReadonlyArray<readonly [id: number, name: string]> = [
  [101, 'Survey'],
  [202, 'Google'],
  [203, 'Facebook'],
  [307, 'Healthgrades'],
]

/** The number of people who own tasks. */
export const ownerCount = 40

/** The owner of a task, by number. */
export const taskOwner = (n: number): { readonly name: string; readonly email: string } => ({
  name: `${firstNames[(n * 5) % firstNames.length]} ${lastNames[(n * 3) % lastNames.length]}`,
  email: `owner.${n}@example.org`,
})

type Tonality = 'positive' | 'neutral' | 'negative'

/** A sentence of a review, and what the service's text analysis finds in it. */
export type Phrase = {
  readonly tonality: Tonality
  readonly sentence: string
  readonly feature: string
  readonly opinion: string
  /** From 0.0 to 5.0. */
  readonly score: number
  readonly category: string
  /** Empty: the category has no sub-categories. */
  readonly subCategory: string
}

const phrase =
  (tonality: Tonality, category: string, subCategory: string) =>
  (feature: string, opinion: string, score: number, sentence: string): Phrase => ({
    tonality,
    sentence,
    feature,
    opinion,
    score,
    category,
    subCategory,
  })

const positivePhrase = (category: string, subCategory: string) => phrase('positive', category, subCategory)
const neutralPhrase = (category: string, subCategory: string) => phrase('neutral', category, subCategory)
const negativePhrase = (category: string, subCategory: string) => phrase('negative', category, subCategory)

export const phrases: ReadonlyArray<Phrase> = [
  positivePhrase('Staff', 'Courtesy')(
    'front desk',
    'friendly',
    4.5,
    'The front desk greeted me by name and was friendly.',
  ),
  positivePhrase('Staff', 'Courtesy')('nurses', 'kind', 5, 'Every one of the nurses was kind to my mother.'),
  positivePhrase('Staff', 'Competence')(
    'technician',
    'skilled',
    4.5,
    'The technician was skilled; I hardly felt the needle.',
  ),
  positivePhrase('Provider', 'Communication')(
    'explanation',
    'clear',
    5,
    'I got a clear explanation of the results, in words I understand.',
  ),
  positivePhrase('Provider', 'Communication')(
    'doctor',
    'listens',
    5,
    'This is a doctor who listens and never rushes you.',
  ),
  positivePhrase('Provider', 'Competence')(
    'diagnosis',
    'accurate',
    4.5,
    'After two years I finally have an accurate diagnosis.',
  ),
  positivePhrase('Provider', 'Bedside Manner')(
    'manner',
    'warm',
    4.5,
    'A warm manner, even on what was plainly a long day.',
  ),
  positivePhrase('Access', 'Waiting Time')('wait', 'short', 4, 'The wait was short, ten minutes at most.'),
  positivePhrase('Access', 'Scheduling')(
    'appointment',
    'easy to book',
    4.5,
    'An appointment was easy to book, the same week, online.',
  ),
  positivePhrase('Access', 'Parking')('parking', 'plenty', 4, 'There is plenty of parking right by the entrance.'),
  positivePhrase('Facility', 'Cleanliness')('rooms', 'spotless', 5, 'The rooms are spotless.'),
  positivePhrase('Facility', 'Comfort')(
    'waiting area',
    'comfortable',
    4,
    'A comfortable waiting area with decent coffee ☕.',
  ),
  positivePhrase('Billing', 'Transparency')(
    'bill',
    'no surprises',
    4,
    'The bill held no surprises, which says a lot these days.',
  ),
  positivePhrase('Care', 'Outcome')('surgery', 'went well', 5, 'My surgery went well and I was walking the next day.'),
  positivePhrase('Care', 'Follow-up')(
    'follow-up call',
    'thoughtful',
    4.5,
    'The follow-up call the day after was thoughtful.',
  ),
  positivePhrase('Overall', '')('experience', 'excellent', 5, 'An excellent experience; I send all my friends here.'),
  neutralPhrase('Access', 'Waiting Time')('wait', 'average', 2.5, 'The wait was average for a place of this size.'),
  neutralPhrase('Access', 'Location')(
    'building',
    'hard to find',
    2,
    'The building is a little hard to find the first time.',
  ),
  neutralPhrase('Provider', 'Communication')('doctor', 'brief', 2.5, 'The doctor was brief but answered what I asked.'),
  neutralPhrase('Facility', 'Comfort')('chairs', 'okay', 2.5, 'The chairs are okay, the magazines are from last year.'),
  neutralPhrase('Staff', 'Courtesy')('staff', 'neutral', 2.5, 'The staff was neither rude nor particularly warm.'),
  neutralPhrase('Billing', 'Cost')('price', 'as expected', 3, 'The price was as expected.'),
  neutralPhrase('Overall', '')('visit', 'routine', 2.5, 'A routine visit, nothing to report either way.'),
  neutralPhrase('Access', 'Scheduling')(
    'portal',
    'takes getting used to',
    2.5,
    'The portal takes some getting used to.',
  ),
  negativePhrase('Staff', 'Courtesy')('receptionist', 'rude', 0.5, 'The receptionist was rude and would not look up.'),
  negativePhrase('Staff', 'Responsiveness')(
    'phone',
    'nobody answers',
    1,
    'Nobody answers the phone; I tried "press 2" nine times.',
  ),
  negativePhrase('Provider', 'Communication')(
    'doctor',
    'dismissive',
    0.5,
    'I felt dismissed before I had finished my sentence.',
  ),
  negativePhrase('Provider', 'Competence')(
    'diagnosis',
    'wrong',
    0,
    'The diagnosis was wrong, and it cost me three months.',
  ),
  negativePhrase('Access', 'Waiting Time')(
    'wait',
    'endless',
    0.5,
    'Two hours in the waiting room, and no word of apology.',
  ),
  negativePhrase('Access', 'Scheduling')(
    'appointment',
    'cancelled',
    1,
    'My appointment was cancelled twice on the same morning.',
  ),
  negativePhrase('Access', 'Parking')('parking', 'impossible', 1.5, 'Parking is impossible after nine.'),
  negativePhrase('Facility', 'Cleanliness')('restroom', 'dirty', 0.5, 'The restroom was dirty and out of soap.'),
  negativePhrase('Billing', 'Accuracy')(
    'bill',
    'double charged',
    0.5,
    'I was double charged and am still waiting for a refund.',
  ),
  negativePhrase('Billing', 'Cost')('price', 'too high', 1.5, 'The price is too high for a ten minute talk.'),
  negativePhrase('Care', 'Follow-up')(
    'results',
    'never called',
    1,
    'They never called with my results, as they had promised.',
  ),
  negativePhrase('Overall', '')('experience', 'disappointing', 0.5, 'A disappointing experience from start to finish.'),
]

/**
 * Liability categories of healthcare from the service's reference lists, each with a justification and a severity from
 * 1 to 3.
 */
export const liabilities: ReadonlyArray<readonly [category: string, justification: string, level: 1 | 2 | 3]> = [
  ['Misdiagnosis', 'The reviewer reports a wrong diagnosis that delayed treatment.', 3],
  ['Negligence', 'The reviewer reports that results were not passed on.', 2],
  ['Unsafe Environment', 'The reviewer reports an unclean restroom.', 1],
  ['Patient Rights', 'The reviewer reports that concerns were dismissed.', 1],
  ['Fraud or Deceptive Practices', 'The reviewer reports a double charge.', 2],
  ['Discrimination', 'The reviewer reports being treated differently from others.', 3],
]

/** Answers of a location's operator to a review, each with the comment that closes its task. */
export const operatorAnswers: ReadonlyArray<readonly [engagement: string, closure: string]> = [
  ['Thank you for taking the time to write; we have shared your words with the team.', 'Shared with the team.'],
  ['We are sorry to read this. Please call our patient relations office.', 'Called the patient, apologised.'],
  ['Your feedback matters to us. We have changed how we schedule mornings.', 'Schedule changed.'],
  ['We would like to make this right; a manager will contact you.', 'Manager spoke with the patient.'],
]
