// SPDX-License-Identifier: Apache-2.0

// A Go program of everyday parts for bench/stacks_bench.py: goroutines, the garbage collector, the standard library.
// Runs for the seconds given.
package main

import (
	"compress/flate"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"
)

var (
	text  = strings.Repeat("the quick brown fox jumps over the lazy dog ", 200)
	words = regexp.MustCompile(`\b(\w+)\b`)
)

func fibonacci(n int) int {
	if n < 2 {
		return n
	}
	return fibonacci(n-1) + fibonacci(n-2)
}

func sortByKey() []int {
	values := make([]int, 2000)
	for i := range values {
		values[i] = i
	}
	sort.Slice(values, func(a, b int) bool { return values[a]%17 < values[b]%17 })
	return values
}

func roundTrip() (int, error) {
	document := map[string][]int{}
	for i := 0; i < 50; i++ {
		document["key"+strconv.Itoa(i)] = make([]int, 20)
	}
	bytes, err := json.Marshal(document)
	if err != nil {
		return 0, err
	}
	var back map[string][]int
	return len(bytes), json.Unmarshal(bytes, &back)
}

func compress() {
	writer, err := flate.NewWriter(io.Discard, 9)
	if err == nil {
		io.WriteString(writer, text)
		writer.Close()
	}
}

func work() {
	fibonacci(18)
	sortByKey()
	words.ReplaceAllStringFunc(text, strings.ToUpper)
	if _, err := roundTrip(); err != nil {
		panic(err)
	}
	compress()
}

func main() {
	seconds, err := strconv.ParseFloat(os.Args[1], 64)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	end := time.Now().Add(time.Duration(seconds * float64(time.Second)))
	var all sync.WaitGroup
	for i := 0; i < 2; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for time.Now().Before(end) {
				work()
			}
		}()
	}
	all.Wait()
}
