/** Lets one caller wait until a condition holds. */
type ConditionVariable = {
  /** Checks the condition again. */
  readonly notify: () => void
  /** Resolves once `condition` holds. Checked immediately and at every `notify`. */
  readonly waitFor: (condition: () => boolean) => Promise<void>
}

export const createConditionVariable = (): ConditionVariable => {
  let wake: () => void = () => undefined
  return {
    notify: () => wake(),
    waitFor: async (condition) => {
      while (!condition())
        await new Promise<void>((resolve) => {
          wake = resolve
        })
    },
  }
}
