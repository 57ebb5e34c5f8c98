import fc from 'fast-check'
import { beforeEach } from 'vitest'

/** The same values for each mutant, so that none is killed by chance; a failure is not shrunk, since nobody reads it. */
fc.configureGlobal({ seed: 20_261_123, endOnFailure: true })

const left = process.env.MUTATION_WITHOUT
const leftOut = left ? new RegExp(left) : undefined

/** Leaves out tests that take seconds: what they alone kill counts as survived. */
beforeEach((context) => {
  if (leftOut?.test(context.task.name)) context.skip()
})
