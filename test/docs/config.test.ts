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

One JSON object configures \`source-feedback\`, \`tap-feedback\` and \`feedback\`. These are all its keys; a test
generates this page from [spec/source.json](../spec/source.json). An error names the path of a wrong key, and a warning
names unknown ones.

> **Most people need only this.** \`base_url\`, \`credentials\` and \`start_date\`; \`feedback init\` writes them.

${settingsTable(sourceFormat.spec)}

Only keys marked *required* must be there, those of \`credentials\` as their \`auth_type\` says. Give \`index\` and
\`count\` of \`partition\`, and \`path\` and \`primary_key\` of a lookup, together or not at all. An empty string, an
empty group, or a group with only defaults counts as left out, since the forms of platforms send such groups.

## Lookups

\`lookups.sources: true\` and \`lookups.locations: true\` are enough for the operations that deployments usually offer.
\`{"enabled": true}\` means the same, for forms that take no bare \`true\`; add other keys for what differs. \`false\`,
or \`{"enabled": false}\`, turns a lookup off.

- \`sources: true\` reads \`GET /api/reputation/v1/sources\` into \`sources\`. If the service refuses (400, 401, 403,
  404, an application error, an empty list, or no records with integer ids), a warning says so and the sources come
  from the reviews.
- \`locations: true\` reads \`GET /api/v2/entity/locations\` into the stream \`managed_locations\`, which exists only
  then.

A lookup with \`paging\` is read page by page. It ends after the number of pages that the response reports at
\`paging.total_pages_path\`, or at a page that is shorter than the others, empty, or without a new record; one more
request follows a short first page and a full last page. A list of several pages is read twice, since a removed record
shifts the others onto pages already read. If the second reading lacks a record of the first, the list is read again,
up to five times, with a warning. If it still changes, the stream fails as transient. If it does not end within 1000
pages, or its pages repeat although the service reports more, the stream fails as a config error.

## Privacy

\`privacy.drop\` leaves attributes out. \`privacy.hash\` replaces them by their HMAC-SHA-256 in hex under
\`privacy.hash_key\`: the same value gives the same hash, in every stream and every run. Both change the service's
response itself, so nothing made from it (parts of reviews, logs, the state, a snapshot) contains the original. A hashed
attribute becomes a string, and null stays null; a dropped one disappears from the schema.

A path names an attribute of the service's responses and applies to every item of an array. Several operations may
return the same words, such as a comment: name them in each. \`check\` refuses paths that do not exist, keys and
cursors, the attributes that \`entities.from_reviews\` uses, and hashing a part from which other streams are made; it
says what to write instead. You can hide these:

${hideable}

A deletion has only its key and cursor. The fields of a configured lookup are unknown beforehand: deselect the attribute
\`record\` to leave them out. If you hide an attribute of \`export.source\`, sources come from the reviews only. You
cannot name attributes that this version does not know: \`on_unknown_attribute: drop\` leaves them out of a record, but
those inside an object stay unless you drop the object.

## Other forms

Since some platforms keep every setting as text, a list or an object may also be JSON text, and a list may be words
separated by commas.

Every key can also come from the environment: \`--config ENV\` reads \`FEEDBACK_BASE_URL\` and so on, \`tap-feedback\`
reads \`TAP_FEEDBACK_BASE_URL\`. With \`_FILE\` at its end, a variable names a file that holds the value.
[running.md](running.md#in-a-container) shows both. A warning names variables with this prefix that match no key, and
keys that don't belong to the chosen \`credentials.auth_type\`.
`

it('docs/config.md has the settings of the spec', async () => {
  await expect(page).toMatchFileSnapshot('../../docs/config.md')
})
