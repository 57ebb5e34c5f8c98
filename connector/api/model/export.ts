import * as t from 'io-ts'
import { annotate } from '../../cdk/schema'
import { Int64, Integer } from './scalar'

const instantText = t.string

/** Body of operation 6, Export reviews. Times as yyyy-MM-dd'T'HH:mm:ss.SSS'Z'. */
export const ExportRequest = t.intersection([
  t.type({ modifiedTimeFrom: instantText }),
  t.partial({
    sources: t.readonlyArray(Integer),
    mentionTimeAfter: instantText,
    mentionTimeBefore: instantText,
    offset: Integer,
    limit: Integer,
    additionalFields: t.readonlyArray(t.string),
  }),
])
export type ExportRequest = t.TypeOf<typeof ExportRequest>

/** Body of operation 7, Export deleted reviews. */
export const DeletedExportRequest = t.intersection([
  t.type({ modifiedTimeFrom: instantText }),
  t.partial({ sources: t.readonlyArray(Integer), offset: Integer, limit: Integer }),
])
export type DeletedExportRequest = t.TypeOf<typeof DeletedExportRequest>

/** Echo of the applied filter (Exported review, Export filter echo); what was not asked comes with its default, or not at all. */
export const ExportFilter = t.partial({
  clientId: annotate({ type: ['string', 'number', 'null'] })(t.union([t.string, t.number, t.null])),
  sources: t.union([t.readonlyArray(Int64), t.null]),
  modifiedTimeFrom: t.union([t.string, t.null]),
  mentionTimeAfter: t.union([t.string, t.null]),
  mentionTimeBefore: t.union([t.string, t.null]),
  dateType: t.union([t.string, t.null]),
  offset: t.union([t.number, t.null]),
  limit: t.union([t.number, t.null]),
  additionalFields: t.union([t.readonlyArray(t.string), t.null]),
})
export type ExportFilter = t.TypeOf<typeof ExportFilter>
