import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Receipt, receipts } from '../../../connector/cdk/write/receipts'

const seed = 20261121
const state = (name: string, inlet?: string) => ({
  _tag: 'State' as const,
  ...(inlet === undefined ? {} : { inlet }),
  answer: ({ accepted, rejected }: { accepted: number; rejected: number }) => `${name} ${accepted}+${rejected}`,
})

describe('receipts', () => {
  it('answers a state only after every record before it, whatever its stream', () => {
    const books = receipts()
    const a = books.record('a', 1)
    const b = books.record('b', 1)
    books.state(state('s1', 'a'))
    const c = books.record('a', 1)
    books.state(state('s2', 'a'))
    c.outcome = 'accepted'
    expect(books.due()).toEqual([])
    a.outcome = 'rejected'
    expect(books.due()).toEqual([])
    b.outcome = 'accepted'
    expect(books.due()).toEqual(['s1 0+1', 's2 1+0'])
    expect(books.open()).toEqual({ count: 0, bytes: 0 })
  })

  it('counts all streams for a state that names none', () => {
    const books = receipts()
    for (const inlet of ['a', 'b', 'b']) books.record(inlet, 1).outcome = 'accepted'
    books.state(state('all'))
    expect(books.due()).toEqual(['all 3+0'])
  })

  it('answers in order, each state once, and the counts add up, in whatever order records settle', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('a', 'b', 'state a', 'state b'), { maxLength: 80 }),
        fc.infiniteStream(fc.tuple(fc.nat(), fc.boolean())),
        (events, chances) => {
          const books = receipts()
          const open: Array<Receipt> = []
          const answers: Array<string> = []
          const sent = new Map<string, number>()
          events.forEach((event, index) => {
            if (event.startsWith('state')) books.state(state(`${index} ${event.slice(6)}`, event.slice(6)))
            else {
              open.push(books.record(event, 3))
              sent.set(event, (sent.get(event) ?? 0) + 1)
            }
          })
          for (const inlet of ['a', 'b']) books.state(state(`end ${inlet}`, inlet))
          while (open.length > 0) {
            const [nth, good] = chances.next().value ?? [0, true]
            const [receipt] = open.splice(nth % open.length, 1)
            if (receipt !== undefined) receipt.outcome = good ? 'accepted' : 'rejected'
            answers.push(...books.due())
          }
          answers.push(...books.due())
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
