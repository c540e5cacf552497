#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Critical paths of the steps of a Kineto trace, computed from their definition in docs/analyze.md, compared with a report's JSON.

    critical_path.py TRACE.json.gz REPORT.json     prints "N paths agree" or the differences, and exits with 1
"""

import bisect
import collections
import functools
import itertools
import json
import re
import sys

from operators import repeated
from traces import CALLS, GPU, complete_events

BACK_TO_BACK = 30_000

Work = collections.namedtuple("Work", "begin end stream correlation kind name call")  # call: (begin, end, thread) or None


def read(path):
    spans, steps, calls, events = [], [], {}, []
    first_use = {}
    for category, begin, end, event in complete_events(path):
        name, arguments = event["name"], event.get("args", {})
        thread = (event["pid"], event["tid"])
        if category in CALLS:
            number = first_use.setdefault(name, len(first_use))
            correlation = arguments.get("correlation", -1)
            spans.append((begin, -end, 5, number, thread, "call", name))
            if correlation >= 0:
                assert correlation not in calls, "ids wrap: not in this script"
                calls[correlation] = (begin, end, thread)
        elif category in ("cpu_op", "operator"):
            spans.append((begin, -end, 4, first_use.setdefault(name, len(first_use)), thread, "operator", repeated(name)))
        elif category == "user_annotation":
            if name.startswith("ProfilerStep#"):
                steps.append((begin, end))
            else:
                spans.append((begin, -end, 1, first_use.setdefault(name, len(first_use)), thread, "operator", repeated(name)))
        elif category in GPU:
            events.append((begin, end, category, name, arguments))
    works = []
    for begin, end, category, name, arguments in events:
        kind = "transfer"
        if category == "kernel":
            kind = "communication" if name.startswith("nccl") else "compute"
        elif category.endswith("memset"):
            name = "[set]"
        else:
            name = f"[copy {re.search('HtoD|DtoH|DtoD|PtoP|HtoH', name)[0].lower()}]"
        works.append(Work(begin, end, arguments["stream"], arguments["correlation"], kind, name, calls.get(arguments["correlation"])))
    return sorted(spans), sorted(steps), works


def windows(steps, works):
    """Of each step with work: (number, duration, begin, end, the work at its end, whether that ends there)."""
    starts, newest = {}, -1
    ordered = sorted(works, key=lambda work: (work.begin, work.end, work.stream, work.correlation))
    for work in ordered:
        if work.call is None or work.call[0] >= steps[-1][1]:
            continue
        step = sum(1 for begin, _ in steps if begin <= work.call[0]) - 1
        if step > newest:
            newest = step
            starts[step] = work
    order = sorted(starts)
    result = []
    for i, step in enumerate(order):
        duration = (steps[step + 1][0] if step + 1 < len(steps) else steps[step][1]) - steps[step][0]
        if i + 1 < len(order):
            end = starts[order[i + 1]].begin
            work = next(one for one in ordered if one.begin == end and one.call is not None)
            result.append((step, duration, starts[step].begin, end, work, False))
        else:
            end = max(work.end for work in works)
            result.append((step, duration, starts[step].begin, end, next(one for one in ordered if one.end == end), True))
    return result


class Path:
    def __init__(self, spans, works, begin, end):
        self.begin, self.time = begin, end
        self.parts = collections.defaultdict(lambda: [0, 0])
        self.works = [work for work in works if work.end >= begin and work.begin <= end]
        # Of several that end together, the last of the last stream comes first.
        self.last_first = sorted(self.works, key=lambda one: (one.end, one.stream, one.begin, one.correlation), reverse=True)
        self.streams = collections.defaultdict(list)
        self.places = {}
        for work in sorted(self.works, key=lambda work: (work.begin, work.end, work.correlation)):
            self.places.setdefault(work, len(self.streams[work.stream]))
            self.streams[work.stream].append(work)
        self.spans = collections.defaultdict(list)
        for span in spans:
            if -span[1] >= begin and span[0] <= end:
                self.spans[span[4]].append(span)
        self.launching = {work.call[2] for work in self.works if work.call}
        # Copies that ended before the call that launched them returned.
        self.blocking = {work.call for work in self.works if work.call and work.name.startswith("[copy") and work.end <= work.call[1]}
        # Computed once for each thread, or for each wait on it.
        self.innermost = functools.cache(self.innermost)
        self.active = functools.cache(self.active)
        self.waits = functools.cache(self.waits)
        self.awaited = functools.cache(self.awaited)

    def ended_by(self, time):
        """The works that have ended by a time, the last first."""
        first = bisect.bisect_left(self.last_first, -time, key=lambda one: -one.end)
        return (self.last_first[i] for i in range(first, len(self.last_first)))

    def back(self, to, kind, name=""):
        to = max(to, self.begin)
        if to < self.time:
            self.parts[kind, name][0] += 1
            self.parts[kind, name][1] += self.time - to
            self.time = to

    def through(self, work):
        self.back(work.begin, work.kind, work.name)
        return work

    def before(self, work):
        stream = self.streams[work.stream]
        at = self.places[work]
        previous = stream[at - 1] if at > 0 else None
        previous_end = min(previous.end, self.time) if previous else None
        launched = None
        if work.call:
            launched = work.call[1] if work.call[1] <= self.time else min(work.call[0], self.time)
        ready = max((time for time in (previous_end, launched) if time is not None), default=None)
        if ready is None or self.time - ready > BACK_TO_BACK:
            later = itertools.takewhile(lambda one: ready is None or one.end > ready, self.ended_by(self.time))
            other = next((one for one in later if one.stream != work.stream and one.begin < self.time), None)
            if other is not None:
                self.back(other.end, "stream_wait")
                return self.through(other)
        if launched is not None and (previous is None or launched > previous_end):
            self.back(launched, "launch")
            return self.on_host(work.call[2])
        if previous is None:
            return None
        self.back(previous_end, "gap")
        return self.through(previous)

    def innermost(self, thread):
        """The stretches between the first and the last time of a thread's spans as (begin, end, innermost span or None), in order of
        time: the last, by their order, of those that are open."""
        spans = [span for span in self.spans[thread] if -span[1] > span[0]]
        times = sorted({time for span in spans for time in (span[0], -span[1])})
        opened, result, at = [], [], 0
        for begin, end in zip(times, times[1:]):
            while at < len(spans) and spans[at][0] <= begin:
                opened.append(spans[at])
                at += 1
            opened = [span for span in opened if -span[1] > begin]
            span = opened[-1] if opened else None
            if result and result[-1][2] is span:
                result[-1][1] = end
            else:
                result.append([begin, end, span])
        return result

    def active(self, thread):
        """Those stretches in which the innermost span is an operator or a call."""
        return [one for one in self.innermost(thread) if one[2] and one[2][2] in (4, 5)]

    def last_active(self, thread):
        stretches = self.active(thread)
        before = bisect.bisect_left(stretches, self.time, key=lambda one: one[0])
        return stretches[before - 1] if before > 0 else None

    def on_host(self, thread):
        while True:
            wait, work = self.last_wait(thread)
            until = -wait[1] if wait else self.begin
            other = self.back_on_thread(thread, until)
            if other is not None:
                thread = other
                continue
            if work is None:
                return None
            self.back(work.end, "sync", wait[6])
            return self.through(work)

    def waits(self, thread):
        """The calls of a thread that wait, the last to end first."""
        waits = [span for span in self.spans[thread] if span[5] == "call" and -span[1] > self.begin
                 and ("Synchronize" in span[6] or ("Memcpy" in span[6] and "Async" not in span[6])
                      or (span[0], -span[1], span[4]) in self.blocking)]
        return sorted(waits, key=lambda span: -span[1], reverse=True)

    def awaited(self, wait):
        """The last work that ended within a wait and was launched before it, or None."""
        ended = itertools.takewhile(lambda one: one.end >= wait[0], self.ended_by(-wait[1]))
        return next((one for one in ended if one.call is None or one.call[0] <= wait[0]), None)

    def last_wait(self, thread):
        waits = self.waits(thread)
        for i in range(bisect.bisect_left(waits, -self.time, key=lambda span: span[1]), len(waits)):
            if work := self.awaited(waits[i]):
                return waits[i], work
        return None, None

    def back_on_thread(self, thread, until):
        while self.time > until:
            last = self.last_active(thread)
            if last is not None and last[1] >= self.time:
                self.host(thread, max(last[0], until))
                continue
            idle = max(last[1], until) if last else until
            if self.time - idle > BACK_TO_BACK:
                others = []
                for other in self.launching - {thread}:
                    then = self.last_active(other)
                    if then and idle < then[1] <= self.time:
                        others.append((then[1], other))
                if others:
                    end, other = max(others, key=lambda one: one[0])
                    assert sum(one[0] == end for one in others) == 1, "two threads end together: not in this script"
                    self.host(thread, end)
                    return other
            self.host(thread, idle)
        return None

    def host(self, thread, to):
        """Back through what the thread was in; outside all spans that is the host."""
        stretches, to = self.innermost(thread), max(to, self.begin)
        at = bisect.bisect_left(stretches, self.time, key=lambda one: one[0]) - 1
        while self.time > to:
            begin, end, span = stretches[at] if at >= 0 else (to, self.time, None)
            if end < self.time:
                self.back(max(end, to), "host")
                continue
            self.back(max(begin, to), span[5] if span else "host", span[6] if span else "")
            at -= 1

    def run(self, work, ends):
        if ends:
            self.through(work)
        while work is not None and self.time > self.begin:
            work = self.before(work)
        self.back(self.begin, "unknown")
        return self.parts


def main():
    spans, steps, works = read(sys.argv[1])
    found = windows(steps, works)
    report = json.load(open(sys.argv[2], encoding="utf-8"))
    differences = []
    ordered = sorted(found, key=lambda step: step[1])
    typical = ordered[(len(ordered) - 1) // 2][0]
    if [path["number"] for path in report["critical_paths"] if not path["slow"]] != [typical]:
        differences.append(f"step {typical} is typical")
    slow = [step["number"] for step in report["steps"][0]["slowest"] if step["gpu_ns"] > 0][:3]
    if [path["number"] for path in report["critical_paths"] if path["slow"]] != slow:
        differences.append(f"steps {slow} are slow")
    for path in report["critical_paths"]:
        (_, _, begin, end, work, ends), = [step for step in found if step[0] == path["number"]]
        if (path["begin_ns"], path["end_ns"]) != (begin, end):
            differences.append(f"step {path['number']}: {begin} to {end} expected, {path['begin_ns']} to {path['end_ns']} reported")
        if sum(part["total_ns"] for part in path["parts"]) != end - begin:
            differences.append(f"step {path['number']}: its parts don't add up")
        expected = {key: tuple(value) for key, value in Path(spans, works, begin, end).run(work, ends).items()}
        reported = {(part["kind"], part["name"]): (part["count"], part["total_ns"]) for part in path["parts"]}
        for key in sorted(reported.keys() - {key for key in reported if key[1] == "(other)"}):
            if expected.get(key) != reported[key]:
                differences.append(f"step {path['number']}, {key}: {expected.get(key)} expected, {reported[key]} reported")
    print("\n".join(differences[:20]) or f"{len(report['critical_paths'])} paths agree")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
