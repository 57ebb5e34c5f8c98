import type { CutRecord } from '../../connector/export/cut/record'

/** The record of a review with only the attributes that a test needs. */
export const reviewRecord = (id: number, modifiedTime: number, more: object = {}): CutRecord => {
  const raw = Buffer.from(JSON.stringify({ id, modifiedTime: new Date(modifiedTime).toISOString(), ...more }))
  return { id: String(id), modifiedTime, raw, json: raw }
}
