import common from '../../vitest.config.mjs'

/** The tests of this folder, as test/slow/run starts them. */
export default {
  ...common,
  test: {
    ...common.test,
    include: ['test/slow/*.test.ts'],
    exclude: [],
    disableConsoleIntercept: true,
    testTimeout: 1_800_000,
    hookTimeout: 1_800_000,
  },
}
