// Copies a topic exactly once with franz-go until it is ended: copy HOST:PORT INPUT OUTPUT GROUP ID
//
// A record goes to the partition of the same number. Each fourth transaction is aborted. Prints
// "committed" after each transaction that was. What to do after an error is the session's affair:
// it aborts and goes back to what is committed. Only an error that it can't go on from begins anew.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const recordsATransaction = 40

func main() {
	servers, input, output, group, id := os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5]
	for {
		err := copyWith(
			kgo.SeedBrokers(servers),
			kgo.TransactionalID(id),
			// What a killed broker leaves open, a transaction and a member, is over soon.
			kgo.TransactionTimeout(6*time.Second),
			kgo.SessionTimeout(6*time.Second),
			kgo.RebalanceTimeout(6*time.Second),
			kgo.DefaultProduceTopic(output),
			kgo.RecordPartitioner(kgo.ManualPartitioner()),
			kgo.ConsumerGroup(group),
			kgo.ConsumeTopics(input),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
			kgo.FetchIsolationLevel(kgo.ReadCommitted()),
			kgo.RequireStableFetchOffsets(),
			kgo.FetchMaxWait(100*time.Millisecond),
		)
		fmt.Fprintln(os.Stderr, "begins anew:", err)
		time.Sleep(50 * time.Millisecond)
	}
}

// copyWith copies until there is an error that the session can't go on from.
func copyWith(options ...kgo.Opt) error {
	ctx := context.Background()
	session, err := kgo.NewGroupTransactSession(options...)
	if err != nil {
		return err
	}
	defer session.Close()
	for turn := 1; ; {
		fetches := session.PollRecords(ctx, recordsATransaction)
		for _, each := range fetches.Errors() {
			fmt.Fprintln(os.Stderr, "fetch:", each.Err)
		}
		if fetches.NumRecords() == 0 {
			continue
		}
		if err := session.Begin(); err != nil {
			return err
		}
		sent := kgo.AbortingFirstErrPromise(session.Client())
		fetches.EachRecord(func(record *kgo.Record) {
			copied := &kgo.Record{Value: record.Value, Partition: record.Partition}
			session.Produce(ctx, copied, sent.Promise())
		})
		commit := kgo.TransactionEndTry(turn%4 != 0)
		if err := sent.Err(); err != nil {
			fmt.Fprintln(os.Stderr, "produce:", err)
			commit = kgo.TryAbort
		}
		committed, err := session.End(ctx, commit)
		if err != nil {
			return err
		}
		if committed {
			fmt.Println("committed")
		}
		turn++
	}
}
