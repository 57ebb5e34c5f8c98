import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createAckQueue, type PendingRecord } from '../../../connector/cdk/write/acknowledge'

const seed = 20261121
const state = (name: string, inlet?: string) => ({
  _tag: 'State' as const,
  ...(inlet === undefined ? {} : { inlet }),
  answer: ({ accepted, rejected }: { accepted: number; rejected: number }) => `${name} ${accepted}+${rejected}`,
})

describe('receipts', () => {
  it('answers a state only after every record before it, whatever its stream', () => {
    const books = createAckQueue()
    const a = books.addRecord('a', 1)
    const b = books.addRecord('b', 1)
    books.addState(state('s1', 'a'))
    const c = books.addRecord('a', 1)
    books.addState(state('s2', 'a'))
    c.outcome = 'accepted'
    expect(books.takeDueLines()).toEqual([])
    a.outcome = 'rejected'
    expect(books.takeDueLines()).toEqual([])
    b.outcome = 'accepted'
    expect(books.takeDueLines()).toEqual(['s1 0+1', 's2 1+0'])
    expect(books.pendingSize()).toEqual({ count: 0, bytes: 0 })
  })

  it('counts all streams for a state that names none', () => {
    const books = createAckQueue()
    for (const inlet of ['a', 'b', 'b']) books.addRecord(inlet, 1).outcome = 'accepted'
    books.addState(state('all'))
    expect(books.takeDueLines()).toEqual(['all 3+0'])
  })

  it('answers in order, each state once, and the counts add up, in whatever order records settle', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('a', 'b', 'state a', 'state b'), { maxLength: 80 }),
        fc.infiniteStream(fc.tuple(fc.nat(), fc.boolean())),
        (events, chances) => {
          const books = createAckQueue()
          const open: Array<PendingRecord> = []
          const answers: Array<string> = []
          const sent = new Map<string, number>()
          events.forEach((event, index) => {
            if (event.startsWith('state')) books.addState(state(`${index} ${event.slice(6)}`, event.slice(6)))
            else {
              open.push(books.addRecord(event, 3))
              sent.set(event, (sent.get(event) ?? 0) + 1)
            }
          })
          for (const inlet of ['a', 'b']) books.addState(state(`end ${inlet}`, inlet))
          while (open.length > 0) {
            const [nth, good] = chances.next().value ?? [0, true]
            const [receipt] = open.splice(nth % open.length, 1)
            if (receipt !== undefined) receipt.outcome = good ? 'accepted' : 'rejected'
            answers.push(...books.takeDueLines())
          }
          answers.push(...books.takeDueLines())
          const states = events.flatMap((event, index) =>
            event.startsWith('state') ? [`${index} ${event.slice(6)}`] : [],
          )
          expect(answers.map((line) => line.split(' ').slice(0, 2).join(' '))).toEqual([...states, 'end a', 'end b'])
          for (const inlet of ['a', 'b']) {
            const counted = answers
              .filter((line) => line.split(' ')[1] === inlet)
              .flatMap((line) => line.split(' ')[2]?.split('+').map(Number) ?? [])
            expect(counted.reduce((sum, count) => sum + count, 0)).toBe(sent.get(inlet) ?? 0)
          }
        },
      ),
      { seed, numRuns: 200 },
    )
  })
})
