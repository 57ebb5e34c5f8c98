import { expect, it } from 'vitest'
import { sourceFormat } from '../../connector/config/source'
import { keyPaths, privacyResources, resourcePaths } from '../../connector/streams/privacy'
import { declaredStreams as streams } from '../../connector/streams/streams'
import { settingsTable } from '../support/config-doc'

const keys = keyPaths(streams as never)
const hideable = (Object.keys(privacyResources) as ReadonlyArray<keyof typeof privacyResources>)
  .map((resource) => {
    const paths = resourcePaths(resource).filter((path) => !keys.has(path))
    return `- ${paths.map((path) => `\`${path}\``).join(', ')}`
  })
  .join('\n')

const page = `# Configuration of the source

One JSON object, the same for \`source-feedback\`, \`tap-feedback\` and \`feedback\`. This page is made from
[spec/source.json](../spec/source.json) and held by a test. A wrong value is answered by its key path; a key that
means nothing is named in a warning.

${settingsTable(sourceFormat.spec)}

A key without a value in this table and the next may be left out; where it lies inside a group, its meaning names the
default. \`index\` and \`count\` of \`partition\`, and \`path\` and \`primary_key\` of a lookup, are given together or
not at all: an empty group, or one with nothing but defaults, as the forms of platforms send it, counts as left out.
So does an empty text.

## Lookups

\`lookups.sources: true\` and \`lookups.locations: true\` need nothing else where the service offers these operations
as deployments have been seen to; \`{"enabled": true}\` says the same where a form takes no bare \`true\`, and other
keys beside \`enabled\` change what differs. \`false\`, or \`{"enabled": false}\`, turns a lookup off and keeps its
other keys.

- \`sources: true\` reads \`GET /api/reputation/v1/sources\` into \`sources\`. Where the service refuses it (400, 401,
  403, 404, an application error, an empty list, or none of records with integer ids), a warning says so and the
  sources come from the reviews, as without it.
- \`locations: true\` reads \`GET /api/v2/entity/locations\` into the stream \`managed_locations\`, which is there
  only then.

A lookup with \`paging\` is asked for page by page. It ends with the number of pages that the answer reports at
\`paging.total_pages_path\`, or with a page that is shorter than the others, empty or without a record that is new; a
first page that is short, and a last page that is full, are followed by one more request. A list of several pages is
read twice, since a record that is removed meanwhile shifts the others onto pages that were read before; if the second
reading lacks any record of the first, it is read again, up to five times. A warning says so. A list that still
changes fails its stream as transient; one that does not end within 1000 pages, or whose pages repeat though the
service reports more of them, fails it as a wrong config.

## Privacy

\`privacy.drop\` leaves attributes out, \`privacy.hash\` lets them leave as HMAC-SHA-256 in hex under
\`privacy.hash_key\`: the same value gives the same hash, in every stream and every run. Both happen to the service's
answer itself, before records are made of it: whatever is derived from it (parts of reviews, logs, the state with its
digests, a snapshot) never sees the original. A hashed attribute is declared a string, null stays null; a dropped one
is gone from the schema.

A path names an attribute of what the service answers; arrays are walked. The same words may come through several of
the service's operations, a comment for one: name them in each. \`check\` refuses paths that do not exist, keys and
cursors, what \`entities.from_reviews\` finds entities by, and to hash a part that other streams are made of, and says
what would be right. These can be hidden:

${hideable}

Of a deletion there is nothing but its key and cursor. The fields of a configured lookup are not known beforehand:
deselect the attribute \`record\` to leave them out. Where an attribute of \`export.source\` is hidden, sources come
from the reviews alone. Attributes that this version does not know cannot be named either:
\`on_unknown_attribute: drop\` leaves them out of a record; those inside an object stay there unless it is dropped.

A list or an object can also be given as JSON text, in a file as in the environment: some platforms keep every setting
as text. A list may be words between commas. A key that does not belong to the chosen \`credentials.auth_type\`, and a
variable with our prefix that stands for no key, are named in a warning.

Every key can also come from the environment: \`--config ENV\` reads \`FEEDBACK_BASE_URL\` and so on, \`tap-feedback\`
reads \`TAP_FEEDBACK_BASE_URL\`; with \`_FILE\` at its end, such a variable names a file that holds the value.
[running.md](running.md#in-a-container) shows both.
`

it('docs/config.md has the settings of the spec', async () => {
  await expect(page).toMatchFileSnapshot('../../docs/config.md')
})
