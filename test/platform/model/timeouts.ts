/** How long a source may send neither RECORD nor STATE. Open source deployments do not end a sync for it. */
export const heartbeatSeconds = 10_800

export const endsForSilence = (seconds: number, flags: { readonly 'heartbeat.failSync': boolean }): boolean =>
  flags['heartbeat.failSync'] && seconds > heartbeatSeconds

/** How long one write to the destination may be blocked; less where the deployment has no file of flags. */
export const endsForBlockedWrite = (seconds: number, hasFlagsFile: boolean): boolean =>
  seconds > (hasFlagsFile ? 86_400 : 7_200)
