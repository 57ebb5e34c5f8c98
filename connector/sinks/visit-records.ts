import * as E from 'fp-ts/Either'
import { pipe } from 'fp-ts/function'
import * as TE from 'fp-ts/TaskEither'
import { VisitRecord } from '../api/model/visit-record'
import type { InputStream } from '../cdk/sink'
import { defineSink, type InputRecord, type PreparedItem } from '../cdk/sink'
import { convertTime } from './convert'
import { checkMapping, createRecordMapper } from './mapping'
import { isServiceAnswering, toBatchAnswer } from './refused'
import type { SinkTarget } from './target'
import { isTombstoneRecord } from './tombstone'
import { isBuiltInLanguage, normalizeVisit } from './visit'
import { failOnErrorStatus, toVisitAnswer } from './visit-answer'
import { deriveVisitId } from './visit-record-id'

const sinkName = 'visit_records'

/** A visit that has its id. */
type VisitWithId = VisitRecord & { readonly visitRecordId: string }
const hasVisitId = (visit: VisitRecord): visit is VisitWithId => visit.visitRecordId != null

/** Operation 4. A visit may be sent again when no answer came, since its id lets it count once. */
export const visitRecordSink = defineSink<SinkTarget, VisitRecord>({
  name: sinkName,
  codec: VisitRecord,
  matchingKeys: ['visitRecordId'],
  operations: ['append'],
  open: (target) =>
    TE.right({
      prepare: (inlet) =>
        pipe(
          checkMapping(inlet, sinkName, VisitRecord, target.mapping[sinkName]),
          E.map(() => createPreparer(target, inlet)),
        ),
      isReachable: isServiceAnswering(target.api.createVisitRecords([])),
      write: (visits, suspected) =>
        pipe(
          target.resend(suspected)(
            pipe(target.api.createVisitRecords(visits), TE.chainEitherK(failOnErrorStatus(visits.length))),
          ),
          TE.map((result) =>
            toVisitAnswer(
              visits.map(({ visitRecordId }) => visitRecordId ?? ''),
              result,
            ),
          ),
          TE.orElse((error) => TE.fromEither(toBatchAnswer('create visit records', error))),
        ),
      finish: () => E.right({ items: [], notes: [] }),
    }),
})

const createPreparer = ({ mapping, now, maxVisitAge, warn }: SinkTarget, inlet: InputStream) => {
  const toMapped = createRecordMapper(VisitRecord, mapping[sinkName], { visitTime: convertTime })
  const strange = new Set<string>()
  const heed = (language: string): void => {
    if (isBuiltInLanguage(language) || strange.has(language) || strange.size >= 20) return
    strange.add(language)
    warn(`${inlet.name}: the language ${language} needs a mapping at the service; its visits are sent as they are.`)
  }
  return (columns: InputRecord): E.Either<string, PreparedItem<VisitWithId>> => {
    if (isTombstoneRecord(columns)) return deletionRefusal
    const mapped = toMapped(columns)
    const made = E.isLeft(mapped) ? mapped : normalizeVisit(mapped.right, { now: now(), maxAge: maxVisitAge })
    if (E.isLeft(made)) return made
    const visit = made.right
    if (visit.languageValue != null) heed(visit.languageValue)
    if (hasVisitId(visit)) return E.right({ item: visit, key: visit.visitRecordId })
    const key = deriveVisitId(inlet, columns)
    return E.right({ item: { ...visit, visitRecordId: key }, key })
  }
}

const deletionRefusal = E.left('the record says that its row was deleted, and a visit cannot be taken back')
