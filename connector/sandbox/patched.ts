/** The text of a review that came from a snapshot, with some attributes changed; `patch` is SQL for a JSON object. */
export const patched = (patch: string): string =>
  `regexp_replace(json_merge_patch(original || '}', ${patch})::VARCHAR, '\\}$', '')`
