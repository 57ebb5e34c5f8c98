import * as E from 'fp-ts/Either'
import { type ApiError, toFailure } from '../../api'
import type { Failure } from '../../cdk'
import type { RunNote } from '../../reading'
import { concernsEntity, EntityError, type EntityResult } from './answer'
import { type EntityGroup, readGroup, readInOrder } from './groups'
import { createEntityReader, type EntityReader, type ReaderEnv } from './reader'
import type { Entity } from './selection'
import { endOfRun } from './window'

/** What one step of reading entities brought. */
export type RunResults = {
  readonly results: ReadonlyArray<EntityResult>
  /** The time up to which the run reads, milliseconds; undefined until an answer has given the service's time. */
  readonly cutoff: number | undefined
  readonly notes: ReadonlyArray<RunNote>
  /** The entities that were read last, or failed. The next run begins after them. */
  readonly last: Pick<EntityGroup, 'kind' | 'ids'>
}

/** How many entities in a row may be refused before others are tried, to see if the service itself is at fault. */
const maxRefusals = (hasAnswer: boolean): number => (hasAnswer ? 100 : 10)

/** How many of the remaining entities are then tried, spread evenly. */
const maxProbes = 20

/** Reads all groups, several at a time; results keep their order. Ends with a failure if the run cannot go on. */
export async function* readEntities(
  env: ReaderEnv,
  entities: ReadonlyArray<Entity>,
  groups: ReadonlyArray<EntityGroup>,
): AsyncGenerator<E.Either<Failure, RunResults>> {
  const reader = createEntityReader(env, entities)
  const [first, ...others] = groups
  if (first === undefined) return
  let refusals = 0
  let answered: Pick<EntityResult, 'kind' | 'id'> | undefined
  const checkRefusal = async (error: ApiError): Promise<void> => {
    refusals += 1
    if (refusals < maxRefusals(answered !== undefined)) return
    answered = await findAnswer(reader, answered === undefined ? spread(groups) : [answered], error)
    refusals = 0
  }
  try {
    // Until an answer has given the service's time, nothing is requested ahead.
    for await (const result of readInOrder(
      [
        () => readGroup(reader, first),
        () =>
          readInOrder(
            others.map((group) => () => readGroup(reader, group)),
            env.concurrency,
          ),
      ],
      1,
    )) {
      const refused = E.isLeft(result.answer) && concernsEntity(result.answer.left) ? result.answer.left : undefined
      if (refused !== undefined && entities.length === 1) throw new EntityError(refused)
      if (refused !== undefined) await checkRefusal(refused)
      else [refusals, answered] = [0, result]
      const last = { kind: result.kind, ids: [result.id] }
      yield E.right({ results: [result], cutoff: reader.cutoff(), notes: reader.takeNotes(), last })
    }
  } catch (error) {
    if (!(error instanceof EntityError)) throw error
    if (error.entities !== undefined)
      yield E.right({ results: [], cutoff: reader.cutoff(), notes: reader.takeNotes(), last: error.entities })
    yield E.left(toFailure(env.operation.name, error.error))
  }
}

/** Some entities, spread evenly over all. */
const spread = (groups: ReadonlyArray<EntityGroup>): ReadonlyArray<Pick<EntityResult, 'kind' | 'id'>> => {
  const all = groups.flatMap(({ kind, ids }) => ids.map((id) => ({ kind, id })))
  const count = Math.min(maxProbes, all.length)
  return Array.from({ length: count }, (_, n) => all[Math.floor((n * all.length) / count)]).flatMap((one) =>
    one === undefined ? [] : [one],
  )
}

/**
 * The first of the entities for which the service answers. If it answers for none, it is at fault itself, with `error`.
 */
const findAnswer = async (
  reader: EntityReader,
  entities: ReadonlyArray<Pick<EntityResult, 'kind' | 'id'>>,
  error: ApiError,
): Promise<Pick<EntityResult, 'kind' | 'id'>> => {
  const to = endOfRun(reader)
  for (const { kind, id } of entities)
    try {
      await reader.ask({ kind, ids: [id], from: to - 1000, to, page: reader.operation.firstPage })
      return { kind, id }
    } catch (other) {
      if (!(other instanceof EntityError) || !concernsEntity(other.error)) throw other
    }
  throw new EntityError(error)
}
