/**
 * The oldest Node.js of each line that an image may contain: the first with the fix for CVE-2026-111497, an
 * out-of-bounds write in the Brotli decoder. A line that is not listed has no fix, or was not checked.
 */
export const nodeFloors = { 22: '22.23.4', 24: '24.22.1', 26: '26.12.1' }

const parse = (version) => /^v?(\d+)\.(\d+)\.(\d+)$/.exec(version)?.slice(1).map(Number)

/** What is wrong with a version of Node.js, in the form of `node --version`; undefined if an image may contain it. */
export const findNodeProblem = (version) => {
  const found = parse(version)
  if (found === undefined) return `"${version}" is not a version of Node.js.`
  const [major] = found
  const floor = nodeFloors[major]
  if (floor === undefined)
    return (
      `Node ${version} has no floor in scripts/node-floor.mjs, ` +
      `which lists ${Object.values(nodeFloors).join(', ')}.`
    )
  const [, minor, patch] = parse(floor)
  const isOld = found[1] < minor || (found[1] === minor && found[2] < patch)
  return isOld ? `Node ${version} is older than ${floor}.` : undefined
}
