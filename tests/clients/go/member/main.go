// A member of a group with franz-go: member HOST:PORT TOPIC GROUP [SETTING=VALUE ...]
//
// Settings have the names that they have in Java. Each record is consumed at least once and then
// committed. Says what happens to it, a line an event, and goes on until it gets SIGTERM.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	recordsAPoll = 40
	patience     = 10 * time.Second
)

func main() {
	settings := map[string]string{}
	for _, each := range os.Args[4:] {
		name, value, _ := strings.Cut(each, "=")
		settings[name] = value
	}
	options := append(optionsOf(settings),
		kgo.SeedBrokers(os.Args[1]),
		kgo.ConsumeTopics(os.Args[2]),
		kgo.ConsumerGroup(os.Args[3]),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.FetchMaxWait(100*time.Millisecond),
		kgo.RebalanceTimeout(patience),
		kgo.OnPartitionsAssigned(saying("assigned")),
		kgo.OnPartitionsRevoked(saying("revoked")),
		kgo.OnPartitionsLost(saying("lost")),
	)
	ended, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := consume(ended, options); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	say("closed")
	flush()
}

func optionsOf(settings map[string]string) []kgo.Opt {
	balancers := map[string]kgo.GroupBalancer{
		"range":              kgo.RangeBalancer(),
		"roundrobin":         kgo.RoundRobinBalancer(),
		"cooperative-sticky": kgo.CooperativeStickyBalancer(),
	}
	options := []kgo.Opt{}
	for name, value := range settings {
		switch name {
		case "group.protocol":
			if value == "consumer" {
				options = append(options, kgo.ServerSideBalancer(), kgo.Balancers(kgo.StickyBalancer()))
			}
		case "partition.assignment.strategy":
			options = append(options, kgo.Balancers(balancers[value]))
		case "group.instance.id":
			options = append(options, kgo.InstanceID(value))
		case "session.timeout.ms":
			options = append(options, kgo.SessionTimeout(milliseconds(value)))
		case "heartbeat.interval.ms":
			options = append(options, kgo.HeartbeatInterval(milliseconds(value)))
		default:
			panic("no such setting here: " + name)
		}
	}
	return options
}

// consume consumes until it is ended, and commits what a poll brought before anything is revoked.
func consume(ended context.Context, options []kgo.Opt) error {
	client, err := kgo.NewClient(append(options, kgo.DisableAutoCommit(), kgo.BlockRebalanceOnPoll())...)
	if err != nil {
		return err
	}
	defer client.CloseAllowingRebalance()
	for ended.Err() == nil {
		poll(ended, client)
		if pending := client.UncommittedOffsets(); len(pending) > 0 {
			commit(client, pending)
		}
		client.AllowRebalance()
	}
	return nil
}

// commit commits these offsets. What is refused stays uncommitted until it is revoked or lost.
func commit(client *kgo.Client, pending map[string]map[int32]kgo.EpochOffset) {
	asked := now()
	client.CommitOffsetsSync(context.Background(), pending, func(
		_ *kgo.Client, _ *kmsg.OffsetCommitRequest, answer *kmsg.OffsetCommitResponse, err error,
	) {
		if err != nil {
			fmt.Fprintln(os.Stderr, "commit:", err)
			return
		}
		for _, topic := range answer.Topics {
			for _, each := range topic.Partitions {
				if err := kerr.ErrorForCode(each.ErrorCode); err != nil {
					fmt.Fprintln(os.Stderr, "commit:", each.Partition, err)
				} else {
					say("committed", int64(each.Partition), pending[topic.Topic][each.Partition].Offset, asked)
				}
			}
		}
	})
	flush()
}

// poll waits a moment for records, and says which have come.
func poll(ended context.Context, client *kgo.Client) {
	moment, cancel := context.WithTimeout(ended, 100*time.Millisecond)
	defer cancel()
	fetches := client.PollRecords(moment, recordsAPoll)
	for _, each := range fetches.Errors() {
		if moment.Err() == nil {
			fmt.Fprintln(os.Stderr, "fetch:", each.Err)
		}
	}
	fetches.EachRecord(func(record *kgo.Record) {
		say("consumed", int64(record.Partition), record.Offset, number(record.Value))
	})
	flush()
}

func saying(what string) func(context.Context, *kgo.Client, map[string][]int32) {
	return func(_ context.Context, _ *kgo.Client, partitions map[string][]int32) {
		numbers := []int64{}
		for _, those := range partitions {
			for _, each := range those {
				numbers = append(numbers, int64(each))
			}
		}
		say(what, numbers...)
		flush()
	}
}

var (
	said sync.Mutex
	out  = bufio.NewWriter(os.Stdout)
)

func say(what string, numbers ...int64) {
	said.Lock()
	defer said.Unlock()
	fmt.Fprint(out, now(), " ", what)
	for _, each := range numbers {
		fmt.Fprint(out, " ", each)
	}
	fmt.Fprintln(out)
}

func flush() {
	said.Lock()
	defer said.Unlock()
	out.Flush()
}

// now is the machine's monotonic clock; Go's own begins with the process.
func now() int64 {
	const clockMonotonic = 1
	var found syscall.Timespec
	_, _, errno := syscall.Syscall(
		syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&found)), 0)
	if errno != 0 {
		panic(errno)
	}
	return found.Nano()
}

func number(value []byte) int64 {
	found, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil {
		panic(err)
	}
	return found
}

func milliseconds(value string) time.Duration {
	return time.Duration(number([]byte(value))) * time.Millisecond
}
