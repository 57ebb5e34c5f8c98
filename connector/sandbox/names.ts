const splitNames = (names: string): ReadonlyArray<string> => names.split(', ')

/** What people, places and their roll-ups are called in the sandbox; combined by number when it is seeded. */
export const firstNames = splitNames(
  'Amara, Benjamin, Chloé, Dmitri, Elena, Farid, Grace, Hiroshi, Ingrid, José, Katarzyna, Liam, Mei, Nadia, Oluwaseun, Priya, Quentin, Rosa, Søren, Tamar, Uma, Viktor, Wanjiru, Zoe',
)
export const lastNames = splitNames(
  "Okafor, Lindqvist, O'Brien, García, Nakamura, Petrov, Haddad, Schmidt, Nguyen, Kowalski, Rossi, Abebe, Johnson, Singh, Moreau, Castellanos, Young, Fernández, Baker, Cohen, Takahashi, Müller, Adeyemi",
)
export const townNames = splitNames(
  'Riverside, Oak Hill, Lakeview, Maple Grove, Cedar Park, Harbor Point, Mesa Verde, Northgate, Stonebridge, Willow Creek, Eastport, Pine Ridge, Fairmont, Bayside, Summit, Glenwood, Kingsway',
)
export const regionNames = splitNames('North Region, South Region, East Region, West Region, Central Region')
export const brandNames = splitNames('Evergreen Health, Blue Harbor Care')

/** The kind of a location, and its avatar type (Reference lists). */
export const locationKinds: ReadonlyArray<readonly [kind: string, avatarType: string]> = [
  ['Medical Center', 'Hospital'],
  ['Family Practice', 'Practice'],
  ['Orthopedics', 'Specialty'],
  ['Pediatrics', 'Department'],
  ['Urgent Care', 'Location'],
]

/** The first is the one whose reviews are surveys. */
export const reviewSources: ReadonlyArray<readonly [id: number, name: string]> = [
  [101, 'Survey'],
  [202, 'Google'],
  [203, 'Facebook'],
  [307, 'Healthgrades'],
]

/** How many people close tasks. */
export const ownerCount = 40

/** A person who closes tasks. */
export const taskOwner = (n: number): { readonly name: string; readonly email: string } => ({
  name: `${firstNames[(n * 5) % firstNames.length]} ${lastNames[(n * 3) % lastNames.length]}`,
  email: `owner.${n}@example.org`,
})
