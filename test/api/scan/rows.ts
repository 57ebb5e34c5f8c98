import type { Cut } from '../../../connector/api/page'

/** A review's cut with nothing in it but what a test needs. */
export const cutOf = (id: number, modifiedTime: number, more: object = {}): Cut => {
  const raw = Buffer.from(JSON.stringify({ id, modifiedTime: new Date(modifiedTime).toISOString(), ...more }))
  return { id: String(id), modifiedTime, raw, json: raw }
}
