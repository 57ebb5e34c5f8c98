import fc from 'fast-check'
import { beforeEach, vi } from 'vitest'

/**
 * The same values for each mutant, so that none is killed by chance. Failures are not shrunk, since nobody reads them.
 */
fc.configureGlobal({ seed: 20_261_123, endOnFailure: true })

const left = process.env.MUTATION_WITHOUT
const leftOut = left ? new RegExp(left) : undefined
/**
 * The name of the test that runs. This file is loaded for each file of tests, and what it mocks is kept from the first.
 */
const current = globalThis as { mutantTestName?: string }

/** Making the views takes most of what a load of one record does: only tests that are named after them make any. */
vi.mock('../../connector/snapshot/store/views', async (importActual) => {
  const actual = await importActual<typeof import('../../connector/snapshot/store/views')>()
  return {
    ...actual,
    createViews: async (...args: Parameters<typeof actual.createViews>) => {
      if (/\bviews?\b/.test(current.mutantTestName ?? '')) await actual.createViews(...args)
    },
  }
})

/** One process tries the mutants, so a second thread of DuckDB only costs time. */
vi.mock('../../connector/snapshot/store/database', async (importActual) => {
  const actual = await importActual<typeof import('../../connector/snapshot/store/database')>()
  const openDatabase: typeof actual.openDatabase = (path, options) =>
    actual.openDatabase(path, { ...options, threads: 1 })
  return { ...actual, openDatabase }
})

/** Leaves out tests that take seconds. Mutants that only they kill count as survivors. */
beforeEach((context) => {
  current.mutantTestName = context.task.name
  if (leftOut?.test(context.task.name)) context.skip()
})
