// SPDX-License-Identifier: Apache-2.0

// What two processes of a host can do with a TCP connection and nothing else: the floor
// under the tcp transport.
//
//	gcc -O2 -march=x86-64-v3 bench/floor/tcp.c -o floor && ./floor [SECONDS]
//
// Two processes on processors 0 and 1 play ping-pong. Each block stands between two probes
// (the round trip of a line of shared memory), which part near (the processors share a cache
// just now) and far. Figures are medians, microseconds one way. 8 bytes are 64 with the heads
// of a message. Large ones are written from where they lie, lent to the kernel from there, or
// copied, plainly or past the cache, into pages that are lent.

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <immintrin.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LARGE = 4 << 20, MAX_BLOCKS = 1 << 12, FAR = 150 }; // FAR: ns of a probe
enum { SPIN, POLL, EPOLL }; // how a receiver looks
enum { WRITE, LEND, PLAIN, PAST }; // how a sender sends

static const struct work {
	const char *name;
	int look, way;
	size_t bytes, piece, most; // most: of a read
} works[] = {
	{"8 B, recv until it comes", SPIN, WRITE, 64, 64, 64},
	{"8 B, poll, recv", POLL, WRITE, 64, 64, 64},
	{"8 B, epoll, recv", EPOLL, WRITE, 64, 64, 64},
	{"4 MiB, written", SPIN, WRITE, LARGE, 2 << 20, 1 << 20},
	{"4 MiB, lent", SPIN, LEND, LARGE, 256 << 10, 1 << 20},
	{"4 MiB, copied, lent", SPIN, PLAIN, LARGE, 256 << 10, 1 << 20},
	{"4 MiB, copied past the cache, lent", SPIN, PAST, LARGE, 256 << 10, 1 << 20},
};
enum { WORKS = sizeof works / sizeof *works };

static struct shared {
	_Alignas(128) uint64_t line;
	_Alignas(128) int at[2], last;
	_Alignas(128) int blocks[2][WORKS];
	double usec[2][WORKS][MAX_BLOCKS];
} *shared;

static int me, sock, epfd, ends[2];
static char *from, *to, *pages;

static void check(int ok, const char *what)
{
	if (!ok) {
		perror(what);
		exit(1);
	}
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static void meet(void)
{
	static int n;
	__atomic_store_n(&shared->at[me], ++n, __ATOMIC_RELEASE);
	while (__atomic_load_n(&shared->at[1 - me], __ATOMIC_ACQUIRE) < n)
		;
}

// probe is the best of four series of round trips of a line, in ns.
static double probe(void)
{
	static uint64_t trip;
	double best = 1e9;
	for (int k = 0; k < 4; k++) {
		double begin = now();
		for (int i = 0; i < 64; i++, trip += 2) {
			if (me == 0)
				__atomic_store_n(&shared->line, trip + 1, __ATOMIC_RELEASE);
			while (__atomic_load_n(&shared->line, __ATOMIC_ACQUIRE) != trip + 2 - me)
				;
			if (me == 1)
				__atomic_store_n(&shared->line, trip + 2, __ATOMIC_RELEASE);
		}
		double took = (now() - begin) / 64;
		if (took < best)
			best = took;
	}
	return best;
}

static void past(char *d, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i += 32)
		_mm256_stream_si256((__m256i *)(d + i), _mm256_loadu_si256((const __m256i *)(s + i)));
	_mm_sfence();
}

// sent: n bytes have gone, or none since the socket is full until it says otherwise.
static size_t sent(ssize_t n, const char *what)
{
	check(n >= 0 || errno == EAGAIN, what);
	struct pollfd full = {sock, POLLOUT};
	while (n < 0 && poll(&full, 1, 0) == 0)
		;
	return n < 0 ? 0 : n;
}

static void give(const struct work *w)
{
	for (size_t at = 0; at < w->bytes;) {
		size_t n = w->bytes - at < w->piece ? w->bytes - at : w->piece;
		if (w->way == WRITE) {
			at += sent(send(sock, from + at, n, MSG_DONTWAIT), "send");
			continue;
		}
		struct iovec v = {w->way == LEND ? from + at : pages + at, n};
		if (w->way == PLAIN)
			memcpy(pages + at, from + at, n);
		if (w->way == PAST)
			past(pages + at, from + at, n);
		ssize_t in = vmsplice(ends[1], &v, 1, 0);
		check(in > 0, "vmsplice");
		for (at += in; in > 0;)
			in -= sent(splice(ends[0], 0, sock, 0, in, SPLICE_F_NONBLOCK), "splice");
	}
}

static void take(const struct work *w)
{
	struct pollfd in = {sock, POLLIN};
	struct epoll_event e;
	for (size_t at = 0; at < w->bytes;) {
		while (w->look == POLL && poll(&in, 1, 0) == 0)
			;
		while (w->look == EPOLL && epoll_wait(epfd, &e, 1, 0) == 0)
			;
		size_t n = w->bytes - at < w->most ? w->bytes - at : w->most;
		ssize_t got = recv(sock, to + at, n, MSG_DONTWAIT);
		check(got > 0 || (got < 0 && errno == EAGAIN), "recv");
		if (got > 0)
			at += got;
	}
}

static void block(int k)
{
	const struct work *w = works + k;
	int trips = w->bytes < LARGE ? 500 : 8;
	meet();
	double before = probe(), begin = now();
	for (int i = 0; i < trips; i++) {
		if (me == 0)
			give(w), take(w);
		else
			take(w), give(w);
	}
	double usec = (now() - begin) / trips / 2e3, after = probe();
	int state = before > FAR, *n = &shared->blocks[state][k];
	if (me == 0 && state == (after > FAR) && *n < MAX_BLOCKS)
		shared->usec[state][k][(*n)++] = usec;
}

// join connects the two processes and makes the caller one of them.
static void join(void)
{
	int on = 1, l = socket(AF_INET, SOCK_STREAM, 0), s[2] = {socket(AF_INET, SOCK_STREAM, 0)};
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t n = sizeof a;
	check(bind(l, (void *)&a, n) == 0 && listen(l, 1) == 0 && getsockname(l, (void *)&a, &n) == 0, "listen");
	check(connect(s[0], (void *)&a, n) == 0 && (s[1] = accept(l, 0, 0)) >= 0, "connect");
	pid_t child = fork();
	check(child >= 0, "fork");
	me = child == 0;
	sock = s[me];
	close(s[1 - me]);
	setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	setsockopt(sock, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
	fcntl(sock, F_SETFL, O_NONBLOCK);
}

static char *memory(size_t n)
{
	char *p = mmap(0, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	check(p != MAP_FAILED, "mmap");
	return p;
}

static int order(const void *a, const void *b)
{
	double d = *(const double *)a - *(const double *)b;
	return (d > 0) - (d < 0);
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 30;
	shared = mmap(0, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(shared != MAP_FAILED, "mmap");
	join();
	alarm(seconds + 60); // whose other end has died
	cpu_set_t cpu;
	CPU_ZERO(&cpu);
	CPU_SET(me, &cpu);
	sched_setaffinity(0, sizeof cpu, &cpu);
	struct epoll_event in = {EPOLLIN};
	check((epfd = epoll_create1(0)) >= 0 && epoll_ctl(epfd, EPOLL_CTL_ADD, sock, &in) == 0, "epoll");
	check(pipe(ends) == 0 && fcntl(ends[1], F_SETPIPE_SZ, 256 << 10) > 0, "pipe");
	from = memset(memory(LARGE), 1, LARGE);
	to = memset(memory(LARGE), 1, LARGE);
	pages = memory(LARGE + (2 << 20));
	pages += -(uintptr_t)pages % (2 << 20);
	madvise(pages, LARGE, MADV_HUGEPAGE);
	memset(pages, 1, LARGE);
	for (double end = now() + seconds * 1e9;;) {
		meet();
		if (me == 0)
			__atomic_store_n(&shared->last, now() > end, __ATOMIC_RELEASE);
		meet();
		if (__atomic_load_n(&shared->last, __ATOMIC_ACQUIRE))
			break;
		for (int k = 0; k < WORKS; k++)
			block(k);
	}
	if (me == 1)
		return 0;
	wait(0);
	printf("%-36s%10s%10s   (median us one way)\n", "", "near", "far");
	for (int k = 0; k < WORKS; k++) {
		printf("%-36s", works[k].name);
		for (int state = 0; state < 2; state++) {
			int n = shared->blocks[state][k];
			qsort(shared->usec[state][k], n, sizeof(double), order);
			if (n < 5)
				printf("%10s", "-");
			else
				printf("%10.2f", shared->usec[state][k][n / 2]);
		}
		puts("");
	}
}
