export const dryRunOption = {
  type: 'boolean',
  help: 'Check and plan everything, send nothing and answer no state',
} as const
