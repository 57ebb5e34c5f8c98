import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as TE from 'fp-ts/TaskEither'
import { VisitRecord } from '../api/model/visit-record'
import type { Inlet } from '../cdk/sink'
import { type Columns, type Prepared, sink } from '../cdk/sink'
import { toTime } from './convert'
import { checkMapping, mapper } from './mapping'
import { isThere, refused } from './refused'
import type { Target } from './target'
import { isTombstone } from './tombstone'
import { mapsByItself, toVisit } from './visit'
import { orError, visitAnswer } from './visit-answer'
import { deriveId } from './visit-record-id'

const name = 'visit_records'

/** A visit that has its id. */
type Identified = VisitRecord & { readonly visitRecordId: string }
const isIdentified = (visit: VisitRecord): visit is Identified => visit.visitRecordId != null

/** Operation 4. A visit may be sent again when no answer came, since its id lets it count once. */
export const visitRecords = sink<Target, VisitRecord>({
  name,
  codec: VisitRecord,
  matchingKeys: ['visitRecordId'],
  operations: ['append'],
  open: (target) =>
    TE.right({
      prepare: (inlet) =>
        pipe(
          checkMapping(inlet, name, VisitRecord, target.mapping[name]),
          E.map(() => preparer(target, inlet)),
        ),
      answers: isThere(target.api.createVisitRecords([])),
      write: (visits, suspected) =>
        pipe(
          target.resend(suspected)(
            pipe(target.api.createVisitRecords(visits), TE.chainEitherK(orError(visits.length))),
          ),
          TE.map((result) =>
            visitAnswer(
              visits.map(({ visitRecordId }) => visitRecordId ?? ''),
              result,
            ),
          ),
          TE.orElse((error) => TE.fromEither(refused('create visit records', error))),
        ),
      finish: () => E.right({ items: [], notes: [] }),
    }),
})

const preparer = ({ mapping, now, maxVisitAge, warn }: Target, inlet: Inlet) => {
  const toMapped = mapper(VisitRecord, mapping[name], { visitTime: toTime })
  const strange = new Set<string>()
  const heed = (language: string): void => {
    if (mapsByItself(language) || strange.has(language) || strange.size >= 20) return
    strange.add(language)
    warn(`${inlet.name}: the language ${language} needs a mapping at the service; its visits are sent as they are.`)
  }
  return (columns: Columns): E.Either<string, Prepared<Identified>> => {
    if (isTombstone(columns)) return deleted
    const mapped = toMapped(columns)
    const made = E.isLeft(mapped) ? mapped : toVisit(mapped.right, { now: now(), maxAge: maxVisitAge })
    if (E.isLeft(made)) return made
    const visit = made.right
    if (visit.languageValue != null) heed(visit.languageValue)
    if (isIdentified(visit)) return E.right({ item: visit, key: visit.visitRecordId })
    const key = deriveId(inlet, columns)
    return E.right({ item: { ...visit, visitRecordId: key }, key })
  }
}

const deleted = E.left('the record says that its row was deleted, and a visit cannot be taken back')
