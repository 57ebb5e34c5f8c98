import { createInterface } from 'node:readline'
import axios from 'axios'

const [, , url] = process.argv
const client = axios.create({ baseURL: url })
const underWay = new Set()

const post = async (visits) => {
  while (underWay.size >= 4) await Promise.race(underWay)
  const sent = client.post('/api/service/visitrecord/create', visits).then(({ data }) => {
    if (Object.keys(data.records).length !== visits.length) throw new Error('an answer names too few visits')
  })
  const held = sent.finally(() => underWay.delete(held))
  underWay.add(held)
}

let batch = []
for await (const line of createInterface({ input: process.stdin })) {
  const { type, record } = JSON.parse(line)
  if (type === 'RECORD') batch.push(record.data)
  if (type === 'STATE') process.stdout.write(`${line}\n`)
  if (batch.length < 100) continue
  await post(batch)
  batch = []
}
if (batch.length > 0) await post(batch)
await Promise.all(underWay)
