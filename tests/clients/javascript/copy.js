// Copies a topic exactly once with kafkajs until it is ended: copy.js HOST:PORT INPUT OUTPUT GROUP ID
//
// A record goes to the partition of the same number. Each fourth transaction is aborted. After an
// error of any kind its outcome is unknown: a new producer settles it, and the consumer goes back to
// what is committed. kafkajs 2.2 ends a consumer for good when a connection is lost on which it looks
// for its coordinator, and now and then does not come back from a restart of its own: whenever one
// crashes a new one takes its place. Prints "committed" after each transaction that was.
'use strict'

const { Kafka, logLevel } = require('kafkajs')

const RECORDS_A_TRANSACTION = 40

const [servers, input, output, group, transactionalId] = process.argv.slice(2)
const retry = { initialRetryTime: 50, maxRetryTime: 500, retries: 20 }
const kafka = new Kafka({ brokers: [servers], logLevel: logLevel.ERROR, retry })
const admin = kafka.admin()
let consumer = null
let producer = null
let turns = 0

async function start() {
  const made = kafka.producer({ transactionalId, idempotent: true, maxInFlightRequests: 1 })
  await made.connect()
  return made
}

async function transact(partition, messages) {
  const transaction = await producer.transaction()
  try {
    await transaction.send({
      topic: output,
      messages: messages.map(each => ({ value: each.value, partition })),
    })
    const offset = (BigInt(messages[messages.length - 1].offset) + 1n).toString()
    await transaction.sendOffsets({
      consumerGroupId: group,
      topics: [{ topic: input, partitions: [{ partition, offset }] }],
    })
  } catch (error) {
    await transaction.abort()
    throw error
  }
  if (++turns % 4 === 0) {
    await transaction.abort()
    return false
  }
  await transaction.commit()
  return true
}

async function goBack(partition) {
  const [{ partitions }] = await admin.fetchOffsets({ groupId: group, topics: [input] })
  const committed = partitions.find(each => each.partition === partition).offset
  consumer.seek({ topic: input, partition, offset: committed === '-1' ? '0' : committed })
}

async function copyBatch({ batch, resolveOffset, heartbeat, isRunning, isStale }) {
  const messages = batch.messages
  for (let at = 0; at < messages.length && isRunning() && !isStale(); at += RECORDS_A_TRANSACTION) {
    const chunk = messages.slice(at, at + RECORDS_A_TRANSACTION)
    let committed = false
    try {
      producer = producer || (await start())
      committed = await transact(batch.partition, chunk)
    } catch (error) {
      console.error(`turn ${turns}: ${error}`)
      await producer?.disconnect().catch(() => {})
      producer = await start()
    }
    if (!committed) {
      await goBack(batch.partition)
      return
    }
    console.log('committed')
    resolveOffset(chunk[chunk.length - 1].offset)
    await heartbeat()
  }
}

// Returns once the consumer has crashed; kafkajs has then waited for the batch at hand.
async function copyUntilCrash() {
  consumer = kafka.consumer({
    groupId: group,
    readUncommitted: false,
    maxWaitTimeInMs: 100,
    retry: { ...retry, restartOnFailure: async () => false },
  })
  const crashed = new Promise(resolve => consumer.on(consumer.events.CRASH, resolve))
  await consumer.connect()
  await consumer.subscribe({ topics: [input], fromBeginning: true })
  await consumer.run({ autoCommit: false, eachBatchAutoResolve: false, eachBatch: copyBatch })
  await crashed
}

async function main() {
  for (;;) {
    try {
      await admin.connect()
      await copyUntilCrash()
    } catch (error) {
      console.error(`the consumer can't begin: ${error}`)
      await consumer?.disconnect()
    }
  }
}

main().catch(error => {
  console.error(error)
  process.exit(1)
})
