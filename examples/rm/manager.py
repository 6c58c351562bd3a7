#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A resource manager of one's own, with Python's standard library only.

    gompirun -np 2 --manager /run/user/1000/job ./loop &
    python3 manager.py /run/user/1000/job 2 6 3

It connects to a job's socket and gives the job these numbers of processes, one after
the other, --every so many seconds. What it reads and writes are lines of JSON:
docs/managers.md says which.
"""

import argparse
import json
import socket
import sys
import time


class Job:
    """The connection with a gompirun."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        # gompirun listens when the secret is there.
        with open(path + ".secret") as f:
            secret = f.read().strip()
        self.lines = self.socket.makefile("r")
        self.say(version=1, secret=secret)
        self.id = self.size = None

    def say(self, **line):
        self.socket.sendall(json.dumps(line).encode() + b"\n")

    def hear(self):
        """Wait for the next event, and keep what it says; None: the job is over."""
        line = self.lines.readline()
        if not line:
            return None
        event = json.loads(line)
        if event["event"] == "arrived" and self.id is None:
            self.id, self.size = event["job"], event["size"]
        elif event["event"] == "sized" and event["job"] == self.id:
            self.size = event["size"]
        elif event["event"] == "refused":
            raise SystemExit("refused: " + event["text"])
        return event

    def resize(self, size):
        """Ask for a size and wait for what comes of it; False: the job is over."""
        if size == self.size:
            return True
        before = self.size
        self.say(job=self.id, size=size)
        while event := self.hear():
            if event["event"] == "sized" and event["job"] == self.id:
                what = "" if self.size == size else ", not %d" % size
                print("%d -> %d processes%s" % (before, self.size, what), flush=True)
                return True
        return False


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", help="socket of gompirun --manager")
    parser.add_argument("sizes", type=int, nargs="+", help="numbers of processes, in turn")
    parser.add_argument("--every", type=float, default=1, help="seconds between them")
    args = parser.parse_args()

    job = Job(args.path)
    while job.id is None:
        if job.hear() is None:
            sys.exit("the job is over")
    for size in args.sizes:
        if not job.resize(size):
            sys.exit("the job is over")
        time.sleep(args.every)


if __name__ == "__main__":
    main()
