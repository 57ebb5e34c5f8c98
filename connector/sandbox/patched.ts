/** The text of a review that came from a snapshot, with some attributes changed; null for one that did not. `patch` is SQL for a JSON object. */
export const patchOriginal = (patch: string): string =>
  `CASE WHEN original IS NOT NULL THEN regexp_replace(json_merge_patch(original || '}', ${patch})::VARCHAR, '\\}$', '') END`
